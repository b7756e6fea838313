/* SPDX-License-Identifier: Apache-2.0 */
/* USART of the STM32F4 (RM0090 30.6, RM0390 25.6): status and data registers. */
#include "thimble_board.h"
#include "thimble_stm32.h"

#define USART_SR THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x00u)
#define USART_SR_TC (1u << 6)
#define USART_SR_TXE (1u << 7)
#define USART_DR THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x04u)
#define USART_BRR THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x08u)
#define USART_CR1 THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x0Cu)
#define USART_CR1_RE (1u << 2)
#define USART_CR1_TE (1u << 3)
#define USART_CR1_RXNEIE (1u << 5)
#define USART_CR1_UE (1u << 13)

void thimble_uart_init(void)
{
#ifdef THIMBLE_TX_PORT /* QEMU has no pins */
    thimble_stm32_uart_pins();
#endif
    USART_BRR = (THIMBLE_USART_CLOCK_HZ + THIMBLE_UART_BAUD / 2u) / THIMBLE_UART_BAUD;
    USART_CR1 = USART_CR1_UE | USART_CR1_RE | USART_CR1_TE | USART_CR1_RXNEIE;
    thimble_uart_listen();
}

void thimble_uart_put(uint8_t byte)
{
    while ((USART_SR & USART_SR_TXE) == 0) {
    }
    USART_DR = byte;
}

uint8_t thimble_uart_take(void)
{
    (void)USART_SR; /* SR, then DR: clears an overrun */
    return (uint8_t)USART_DR;
}

void thimble_uart_flush(void)
{
    while ((USART_SR & USART_SR_TC) == 0) {
    }
}
