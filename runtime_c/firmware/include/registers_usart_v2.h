/* SPDX-License-Identifier: Apache-2.0 */
/* USART and LPUART of the STM32F7, H7 and L4 (RM0385 31.8, RM0433 48.7 and 49.6, RM0351 40.8): offsets, bits.
 * A UART with a FIFO calls some bits by longer names, and divides its clock further. */
#ifndef REGISTERS_USART_V2_H
#define REGISTERS_USART_V2_H

#define USART_CR1 0x00u
#define USART_CR1_UE (1u << 0)
#define USART_CR1_RE (1u << 2)
#define USART_CR1_TE (1u << 3)
#ifdef THIMBLE_USART_FIFO
#define USART_CR1_RXNEIE_RXFNEIE (1u << 5)
#else
#define USART_CR1_RXNEIE (1u << 5)
#endif
#define USART_CR2 0x04u
#define USART_CR3 0x08u
#define USART_BRR 0x0Cu
#define USART_ISR 0x1Cu
#define USART_ISR_TC (1u << 6)
#ifdef THIMBLE_USART_FIFO
#define USART_ISR_RXNE_RXFNE (1u << 5)
#define USART_ISR_TXE_TXFNF (1u << 7)
#else
#define USART_ISR_RXNE (1u << 5)
#define USART_ISR_TXE (1u << 7)
#endif
#define USART_ICR 0x20u
#define USART_ICR_PECF (1u << 0)
#define USART_ICR_FECF (1u << 1)
#ifdef THIMBLE_USART_FIFO
#define USART_ICR_NECF (1u << 2)
#else
#define USART_ICR_NCF (1u << 2)
#endif
#define USART_ICR_ORECF (1u << 3)
#define USART_RDR 0x24u
#define USART_TDR 0x28u
#ifdef THIMBLE_USART_FIFO
#define USART_PRESC 0x2Cu
#endif

#endif
