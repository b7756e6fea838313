/* SPDX-License-Identifier: Apache-2.0 */
/* The memory protection unit of Armv6-M and Armv7-M and the floating-point unit of the latter (Arm DDI 0419
 * B3.5, DDI 0403 B3.5.9, B3.2.21), which Armv8-M has otherwise. */
#ifndef REGISTERS_ARMV7M_H
#define REGISTERS_ARMV7M_H

#ifndef THIMBLE_NO_MPU
#define MPU_RASR 0xE000EDA0u
#define MPU_RASR_ENABLE_Msk (1u << 0)
#define MPU_RASR_SIZE_Pos 1u
#define MPU_RASR_SRD_Pos 8u
#define MPU_RASR_C_Msk (1u << 17)
#define MPU_RASR_AP_Pos 24u
#define MPU_RASR_XN_Msk (1u << 28)
#endif

#if !defined(__ARM_ARCH_6M__) && !defined(__ARM_ARCH_7M__) /* an M3 has no FPU */
#define FPU_FPCCR 0xE000EF34u
#define FPU_FPCCR_LSPEN_Msk (1u << 30)
#define FPU_FPCCR_ASPEN_Msk (1u << 31)
#endif

#endif
