/* SPDX-License-Identifier: Apache-2.0 */
/* USART and LPUART of the STM32F7, H7, L4, and of those that came after. */
#include "registers_usart_v2.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#ifdef THIMBLE_USART_FIFO /* which stays off */
#define RECEIVED_INTERRUPT USART_CR1_RXNEIE_RXFNEIE
#define RECEIVED USART_ISR_RXNE_RXFNE
#define ROOM_TO_SEND USART_ISR_TXE_TXFNF
#define NOISE USART_ICR_NECF
#else
#define RECEIVED_INTERRUPT USART_CR1_RXNEIE
#define RECEIVED USART_ISR_RXNE
#define ROOM_TO_SEND USART_ISR_TXE
#define NOISE USART_ICR_NCF
#endif
#define ERRORS (USART_ICR_PECF | USART_ICR_FECF | NOISE | USART_ICR_ORECF)

#define USART(offset) THIMBLE_REGISTER(THIMBLE_USART_BASE + (offset))

/* Kernel clocks per bit: 1 for a USART with 16-fold oversampling, 256 for an LPUART. */
#ifndef THIMBLE_USART_BRR_FACTOR
#define THIMBLE_USART_BRR_FACTOR 1u
#endif
#define SCALED_CLOCK ((uint64_t)THIMBLE_USART_CLOCK_HZ * THIMBLE_USART_BRR_FACTOR)

void thimble_uart_init(void)
{
    thimble_stm32_uart_pins();
    USART(USART_CR1) = 0;
    USART(USART_CR2) = 0;
    USART(USART_CR3) = 0;
#ifdef THIMBLE_USART_FIFO
    USART(USART_PRESC) = 0;
#endif
    USART(USART_BRR) = (uint32_t)((SCALED_CLOCK + THIMBLE_UART_BAUD / 2u) / THIMBLE_UART_BAUD);
    USART(USART_CR1) = USART_CR1_UE | USART_CR1_RE | USART_CR1_TE | RECEIVED_INTERRUPT;
    thimble_uart_listen();
}

void thimble_uart_put(uint8_t byte)
{
    while ((USART(USART_ISR) & ROOM_TO_SEND) == 0) {
    }
    USART(USART_TDR) = byte;
}

int32_t thimble_uart_take(void)
{
    USART(USART_ICR) = ERRORS;
    return (USART(USART_ISR) & RECEIVED) != 0 ? (int32_t)(USART(USART_RDR) & 0xFFu) : -1;
}

void thimble_uart_flush(void)
{
    while ((USART(USART_ISR) & USART_ISR_TC) == 0) {
    }
}
