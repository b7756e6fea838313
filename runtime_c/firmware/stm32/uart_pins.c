/* SPDX-License-Identifier: Apache-2.0 */
/* GPIO (RM0090 8.4, RM0385 6.4, RM0433 11.4, RM0351 8.5): the same in all the families. */
#include "thimble_stm32.h"

#define MODER 0x00u
#define PUPDR 0x0Cu
#define AFRL 0x20u
#define MODE_ALTERNATE 2u
#define PULL_UP 1u

/* Pull-ups keep a receiver quiet where nothing is plugged in. */
static void alternate(uint32_t port, uint32_t pin, uint32_t function)
{
    const uint32_t two_bits = 2u * pin;
    const uint32_t four_bits = 4u * (pin % 8u);
    thimble_replace(port + AFRL + 4u * (pin / 8u), 0xFu << four_bits, function << four_bits);
    thimble_replace(port + PUPDR, 3u << two_bits, PULL_UP << two_bits);
    thimble_replace(port + MODER, 3u << two_bits, MODE_ALTERNATE << two_bits);
}

void thimble_stm32_uart_pins(void)
{
    thimble_clock_enable(THIMBLE_GPIO_ENABLE, THIMBLE_GPIO_ENABLE_BITS);
    thimble_clock_enable(THIMBLE_USART_ENABLE, THIMBLE_USART_ENABLE_BITS);
    alternate(THIMBLE_TX_PORT, THIMBLE_TX_PIN, THIMBLE_UART_FUNCTION);
    alternate(THIMBLE_RX_PORT, THIMBLE_RX_PIN, THIMBLE_UART_FUNCTION);
}
