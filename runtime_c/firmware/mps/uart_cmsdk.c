/* SPDX-License-Identifier: Apache-2.0 */
/* CMSDK APB UART (Arm DDI 0479, 4.3). */
#include "thimble_board.h"
#include "thimble_cortex_m.h"

#define UART_DATA THIMBLE_REGISTER(THIMBLE_UART_BASE + 0x00u)
#define UART_STATE THIMBLE_REGISTER(THIMBLE_UART_BASE + 0x04u)
#define UART_STATE_TX_FULL (1u << 0)
#define UART_STATE_RX_FULL (1u << 1)
#define UART_CTRL THIMBLE_REGISTER(THIMBLE_UART_BASE + 0x08u)
#define UART_CTRL_TX_ENABLE (1u << 0)
#define UART_CTRL_RX_ENABLE (1u << 1)
#define UART_CTRL_RX_INTERRUPT (1u << 3)
#define UART_INTCLEAR THIMBLE_REGISTER(THIMBLE_UART_BASE + 0x0Cu)
#define UART_INTCLEAR_RX (1u << 1)
#define UART_BAUDDIV THIMBLE_REGISTER(THIMBLE_UART_BASE + 0x10u)

void thimble_uart_init(void)
{
    UART_BAUDDIV = THIMBLE_CLOCK_HZ / THIMBLE_UART_BAUD;
    UART_CTRL = UART_CTRL_TX_ENABLE | UART_CTRL_RX_ENABLE | UART_CTRL_RX_INTERRUPT;
    thimble_uart_listen();
}

void thimble_uart_put(uint8_t byte)
{
    while ((UART_STATE & UART_STATE_TX_FULL) != 0) {
    }
    UART_DATA = byte;
}

int32_t thimble_uart_take(void)
{
    UART_INTCLEAR = UART_INTCLEAR_RX;
    return (UART_STATE & UART_STATE_RX_FULL) != 0 ? (int32_t)(UART_DATA & 0xFFu) : -1;
}

void thimble_uart_flush(void)
{
    while ((UART_STATE & UART_STATE_TX_FULL) != 0) {
    }
}
