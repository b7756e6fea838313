/* SPDX-License-Identifier: Apache-2.0 */
/* USART of the STM32F1, F2, F4 and L1: status and data registers. */
#include "registers_usart_v1.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define USART(offset) THIMBLE_REGISTER(THIMBLE_USART_BASE + (offset))

void thimble_uart_init(void)
{
#ifdef THIMBLE_TX_PORT /* QEMU has no pins */
    thimble_stm32_uart_pins();
#endif
    USART(USART_CR1) = 0;
    USART(USART_CR2) = 0;
    USART(USART_CR3) = 0;
    USART(USART_BRR) = (THIMBLE_USART_CLOCK_HZ + THIMBLE_UART_BAUD / 2u) / THIMBLE_UART_BAUD;
    USART(USART_CR1) = USART_CR1_UE | USART_CR1_RE | USART_CR1_TE | USART_CR1_RXNEIE;
    thimble_uart_listen();
}

void thimble_uart_put(uint8_t byte)
{
    while ((USART(USART_SR) & USART_SR_TXE) == 0) {
    }
    USART(USART_DR) = byte;
}

/* SR, then DR: clears an overrun. */
int32_t thimble_uart_take(void)
{
    const uint32_t status = USART(USART_SR);
    const uint32_t data = USART(USART_DR);
    return (status & USART_SR_RXNE) != 0 ? (int32_t)(data & 0xFFu) : -1;
}

void thimble_uart_flush(void)
{
    while ((USART(USART_SR) & USART_SR_TC) == 0) {
    }
}
