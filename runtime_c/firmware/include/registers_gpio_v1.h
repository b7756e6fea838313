/* SPDX-License-Identifier: Apache-2.0 */
/* A GPIO port of the STM32F1 and what chooses its pins' functions (RM0008 9.2, 9.4; RM0041 7.2, 7.4):
 * offsets, and addresses by ST's names. */
#ifndef REGISTERS_GPIO_V1_H
#define REGISTERS_GPIO_V1_H

#define GPIO_CRL 0x00u
#define GPIO_CRH 0x04u
#define GPIO_BSRR 0x10u

#define AFIO_MAPR 0x40010004u
#define AFIO_MAPR_USART1_REMAP_Pos 2u
#define AFIO_MAPR_USART1_REMAP (1u << 2)
#define AFIO_MAPR_USART2_REMAP_Pos 3u
#define AFIO_MAPR_USART2_REMAP (1u << 3)
#define AFIO_MAPR_USART3_REMAP_Pos 4u
#define AFIO_MAPR_USART3_REMAP (3u << 4)
#define AFIO_MAPR_SWJ_CFG (7u << 24)

#define RCC_APB2ENR 0x40021018u
#define RCC_APB2ENR_AFIOEN (1u << 0)

#define USART1_BASE 0x40013800u
#define USART2_BASE 0x40004400u

#endif
