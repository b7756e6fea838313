/* SPDX-License-Identifier: Apache-2.0 */
#include "registers_gpio.h"
#include "thimble_stm32.h"

#define MODE_ALTERNATE 2u
#define PULL_UP 1u

void thimble_stm32_alternate_pin(uint32_t port, uint32_t pin, uint32_t function, uint32_t pull)
{
    const uint32_t two_bits = 2u * pin;
    const uint32_t four_bits = 4u * (pin % 8u);
    thimble_replace(port + GPIO_AFR + 4u * (pin / 8u), 0xFu << four_bits, function << four_bits);
    thimble_replace(port + GPIO_PUPDR, 3u << two_bits, pull << two_bits);
    THIMBLE_REGISTER(port + GPIO_OTYPER) &= ~(1u << pin);
    thimble_replace(port + GPIO_MODER, 3u << two_bits, MODE_ALTERNATE << two_bits);
}

void thimble_stm32_uart_pins(void)
{
    thimble_clock_enable(THIMBLE_GPIO_ENABLE, THIMBLE_GPIO_ENABLE_BITS);
    thimble_clock_enable(THIMBLE_USART_ENABLE, THIMBLE_USART_ENABLE_BITS);
    /* Pull-ups keep a receiver quiet where nothing is plugged in. */
    thimble_stm32_alternate_pin(THIMBLE_TX_PORT, THIMBLE_TX_PIN, THIMBLE_TX_FUNCTION, PULL_UP);
    thimble_stm32_alternate_pin(THIMBLE_RX_PORT, THIMBLE_RX_PIN, THIMBLE_RX_FUNCTION, PULL_UP);
}
