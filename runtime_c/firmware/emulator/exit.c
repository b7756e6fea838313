/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_firmware.h"

/* Semihosting SYS_EXIT_EXTENDED (Arm semihosting specification, 0x20): ADP_Stopped_ApplicationExit. */
void thimble_emulator_exit(void)
{
    const uint32_t arguments[2] = {0x20026u, 0u};
    register uint32_t operation __asm("r0") = 0x20u;
    register const uint32_t *parameters __asm("r1") = arguments;
    __asm volatile("bkpt 0xAB" : : "r"(operation), "r"(parameters) : "memory");
    for (;;) {
    }
}
