/* SPDX-License-Identifier: Apache-2.0 */
/* A GPIO port (RM0090 8.4, RM0385 6.4, RM0433 11.4, RM0351 8.5), the same in all the families but the F1:
 * offsets. */
#ifndef REGISTERS_GPIO_H
#define REGISTERS_GPIO_H

#define GPIO_MODER 0x00u
#define GPIO_OTYPER 0x04u
#define GPIO_PUPDR 0x0Cu
#define GPIO_AFR 0x20u

#endif
