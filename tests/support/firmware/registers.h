/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of a simulated chip, in place of real addresses (compile with -include). */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stdint.h>

volatile uint32_t *simulated(uint32_t address);

/* Prints what the start-up waits for, and ends the program. */
void stopped(void);

/* Prints it, in place of waiting. */
void paused(uint32_t milliseconds);

#define THIMBLE_STOPPED() stopped()
#define THIMBLE_PAUSE(milliseconds) paused(milliseconds)
#define THIMBLE_REGISTER(address) (*simulated(address))
/* The computer is little-endian. */
#define THIMBLE_REGISTER_BYTE(address) (*(volatile uint8_t *)simulated(address))

#endif
