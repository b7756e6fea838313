/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a pin switches (RM0385 6.4.3), as in all families but the STM32F1: an offset in a GPIO port. */
#ifndef REGISTERS_GPIO_SPEED_H
#define REGISTERS_GPIO_SPEED_H

#define GPIO_OSPEEDR 0x08u

#endif
