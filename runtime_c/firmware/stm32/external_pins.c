/* SPDX-License-Identifier: Apache-2.0 */
#include "registers_gpio_speed.h"
#include "thimble_stm32.h"

#define FASTEST 3u

/* Port, and four bits each of pin and function. */
static const uint16_t external_pins[] = {THIMBLE_EXTERNAL_PINS};

void thimble_stm32_external_pins(void)
{
    thimble_clock_enable(THIMBLE_GPIO_ENABLE, THIMBLE_EXTERNAL_GPIO_BITS);
    for (uint32_t i = 0; i < sizeof(external_pins) / sizeof(external_pins[0]); i++) {
        const uint32_t code = external_pins[i];
        const uint32_t port = THIMBLE_EXTERNAL_GPIO + (code >> 8) * THIMBLE_EXTERNAL_GPIO_STEP;
        const uint32_t pin = (code >> 4) & 0xFu;
        THIMBLE_REGISTER(port + GPIO_OSPEEDR) |= FASTEST << (2u * pin);
        thimble_stm32_alternate_pin(port, pin, code & 0xFu, 0);
    }
}
