/* SPDX-License-Identifier: Apache-2.0 */
/* USART and LPUART of the STM32F7, H7 and L4 (RM0385 31.8, RM0433 48.7 and 49.6, RM0351 40.8). */
#include "thimble_board.h"
#include "thimble_stm32.h"

#define USART_CR1 THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x00u)
#define USART_CR1_UE (1u << 0)
#define USART_CR1_RE (1u << 2)
#define USART_CR1_TE (1u << 3)
#define USART_CR1_RXNEIE (1u << 5)
#define USART_BRR THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x0Cu)
#define USART_ISR THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x1Cu)
#define USART_ISR_TC (1u << 6)
#define USART_ISR_TXE (1u << 7)
#define USART_ICR THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x20u)
#define USART_ICR_ERRORS 0x0Fu /* parity, framing, noise, overrun */
#define USART_RDR THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x24u)
#define USART_TDR THIMBLE_REGISTER(THIMBLE_USART_BASE + 0x28u)

/* Kernel clocks per bit: 1 for a USART with 16-fold oversampling, 256 for an LPUART. */
#ifndef THIMBLE_USART_BRR_FACTOR
#define THIMBLE_USART_BRR_FACTOR 1u
#endif
#define SCALED_CLOCK ((uint64_t)THIMBLE_USART_CLOCK_HZ * THIMBLE_USART_BRR_FACTOR)

void thimble_uart_init(void)
{
    thimble_stm32_uart_pins();
    USART_BRR = (uint32_t)((SCALED_CLOCK + THIMBLE_UART_BAUD / 2u) / THIMBLE_UART_BAUD);
    USART_CR1 = USART_CR1_UE | USART_CR1_RE | USART_CR1_TE | USART_CR1_RXNEIE;
    thimble_uart_listen();
}

void thimble_uart_put(uint8_t byte)
{
    while ((USART_ISR & USART_ISR_TXE) == 0) {
    }
    USART_TDR = byte;
}

uint8_t thimble_uart_take(void)
{
    USART_ICR = USART_ICR_ERRORS;
    return (uint8_t)USART_RDR;
}

void thimble_uart_flush(void)
{
    while ((USART_ISR & USART_ISR_TC) == 0) {
    }
}
