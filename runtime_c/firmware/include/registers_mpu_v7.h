/* SPDX-License-Identifier: Apache-2.0 */
/* The Armv7-M memory protection unit (Arm DDI 0403 B3.5.9); Armv8-M has other regions. */
#ifndef REGISTERS_MPU_V7_H
#define REGISTERS_MPU_V7_H

#define MPU_RASR 0xE000EDA0u
#define MPU_RASR_ENABLE_Msk (1u << 0)
#define MPU_RASR_SIZE_Pos 1u
#define MPU_RASR_SRD_Pos 8u
#define MPU_RASR_XN_Msk (1u << 28)

#endif
