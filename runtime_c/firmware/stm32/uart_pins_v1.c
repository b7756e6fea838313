/* SPDX-License-Identifier: Apache-2.0 */
/* Pins of the STM32F1, which has no alternate function of each pin: AFIO moves a whole UART to other pins,
 * and THIMBLE_TX_FUNCTION is what the UART's field of AFIO_MAPR holds. */
#include "registers_gpio_v1.h"
#include "thimble_stm32.h"

#define OUTPUT_OF_PERIPHERAL 0xAu /* push-pull, at most 2 MHz */
#define INPUT_PULLED 0x8u         /* up or down, as the output register says */

#define REMAP                                                                                                \
    (THIMBLE_USART_BASE == USART1_BASE   ? AFIO_MAPR_USART1_REMAP                                            \
     : THIMBLE_USART_BASE == USART2_BASE ? AFIO_MAPR_USART2_REMAP                                            \
                                         : AFIO_MAPR_USART3_REMAP)
#define REMAP_POSITION                                                                                       \
    (THIMBLE_USART_BASE == USART1_BASE   ? AFIO_MAPR_USART1_REMAP_Pos                                        \
     : THIMBLE_USART_BASE == USART2_BASE ? AFIO_MAPR_USART2_REMAP_Pos                                        \
                                         : AFIO_MAPR_USART3_REMAP_Pos)

static void configure(uint32_t port, uint32_t pin, uint32_t what)
{
    const uint32_t four_bits = 4u * (pin % 8u);
    thimble_replace(port + (pin < 8u ? GPIO_CRL : GPIO_CRH), 0xFu << four_bits, what << four_bits);
}

void thimble_stm32_uart_pins(void)
{
    thimble_clock_enable(THIMBLE_GPIO_ENABLE, THIMBLE_GPIO_ENABLE_BITS);
    thimble_clock_enable(THIMBLE_USART_ENABLE, THIMBLE_USART_ENABLE_BITS);
    thimble_clock_enable(RCC_APB2ENR, RCC_APB2ENR_AFIOEN);
    /* SWJ_CFG cannot be read (RM0008 9.4.2); 0 lets a probe in, as a reset does. */
    thimble_replace(AFIO_MAPR, AFIO_MAPR_SWJ_CFG | REMAP, THIMBLE_TX_FUNCTION << REMAP_POSITION);
    configure(THIMBLE_TX_PORT, THIMBLE_TX_PIN, OUTPUT_OF_PERIPHERAL);
    /* A pull-up keeps a receiver quiet where nothing is plugged in. */
    THIMBLE_REGISTER(THIMBLE_RX_PORT + GPIO_BSRR) = 1u << THIMBLE_RX_PIN;
    configure(THIMBLE_RX_PORT, THIMBLE_RX_PIN, INPUT_PULLED);
}
