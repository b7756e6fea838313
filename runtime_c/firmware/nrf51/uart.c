/* SPDX-License-Identifier: Apache-2.0 */
/* Nordic's UART (nRF51 Series Reference Manual 3.0, chapter 29): tasks are started by writing 1, an event is
 * a register that software clears. */
#include "thimble_board.h"
#include "thimble_cortex_m.h"

#define UART_TASKS_STARTRX THIMBLE_REGISTER(0x40002000u)
#define UART_TASKS_STARTTX THIMBLE_REGISTER(0x40002008u)
#define UART_EVENTS_RXDRDY THIMBLE_REGISTER(0x40002108u)
#define UART_EVENTS_TXDRDY THIMBLE_REGISTER(0x4000211Cu)
#define UART_INTENSET THIMBLE_REGISTER(0x40002304u)
#define UART_INTENSET_RXDRDY (1u << 2)
#define UART_ENABLE THIMBLE_REGISTER(0x40002500u)
#define UART_ENABLE_ENABLED 4u
#define UART_PSELTXD THIMBLE_REGISTER(0x4000250Cu)
#define UART_PSELRXD THIMBLE_REGISTER(0x40002514u)
#define UART_RXD THIMBLE_REGISTER(0x40002518u)
#define UART_TXD THIMBLE_REGISTER(0x4000251Cu)
#define UART_BAUDRATE THIMBLE_REGISTER(0x40002524u)
#define UART_BAUDRATE_115200 0x01D7E000u
#define GPIO_OUTSET THIMBLE_REGISTER(0x50000508u)
#define GPIO_DIRSET THIMBLE_REGISTER(0x50000518u)

#if THIMBLE_UART_BAUD != 115200
#error "the divisor of another rate is not known here"
#endif

void thimble_uart_init(void)
{
    GPIO_OUTSET = 1u << THIMBLE_UART_TX_PIN; /* idle is high, also before the UART has the pin */
    GPIO_DIRSET = 1u << THIMBLE_UART_TX_PIN;
    UART_PSELTXD = THIMBLE_UART_TX_PIN;
    UART_PSELRXD = THIMBLE_UART_RX_PIN;
    UART_BAUDRATE = UART_BAUDRATE_115200;
    UART_ENABLE = UART_ENABLE_ENABLED;
    UART_EVENTS_RXDRDY = 0;
    UART_INTENSET = UART_INTENSET_RXDRDY;
    UART_TASKS_STARTTX = 1;
    UART_TASKS_STARTRX = 1;
    thimble_uart_listen();
}

void thimble_uart_put(uint8_t byte)
{
    UART_EVENTS_TXDRDY = 0;
    UART_TXD = byte;
    while (UART_EVENTS_TXDRDY == 0) {
    }
}

/* The event is cleared first: reading RXD lets the next byte in, and its event must not be lost. */
int32_t thimble_uart_take(void)
{
    if (UART_EVENTS_RXDRDY == 0) {
        return -1;
    }
    UART_EVENTS_RXDRDY = 0;
    return (int32_t)(UART_RXD & 0xFFu);
}

/* `thimble_uart_put` has waited for each byte. */
void thimble_uart_flush(void)
{
}
