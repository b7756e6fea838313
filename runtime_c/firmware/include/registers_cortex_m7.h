/* SPDX-License-Identifier: Apache-2.0 */
/* Registers that only a Cortex-M7 has (Arm DDI 0403 C1.8): a lock on DWT. */
#ifndef REGISTERS_CORTEX_M7_H
#define REGISTERS_CORTEX_M7_H

#define DWT_LAR 0xE0001FB0u

#endif
