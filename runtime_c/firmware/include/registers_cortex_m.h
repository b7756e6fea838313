/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the Armv6-M, Armv7-M and Armv8-M system control space (Arm DDI 0419 B3.2, DDI 0403 B3.2, DDI
 * 0553 D1.2), by the names of CMSIS-Core. scripts/check_registers.py holds every name and number of the
 * registers_*.h against its headers. */
#ifndef REGISTERS_CORTEX_M_H
#define REGISTERS_CORTEX_M_H

#define SysTick_CTRL 0xE000E010u
#define SysTick_CTRL_ENABLE_Msk (1u << 0)
#define SysTick_CTRL_CLKSOURCE_Msk (1u << 2)
#define SysTick_LOAD 0xE000E014u
#define SysTick_LOAD_RELOAD_Msk 0xFFFFFFu
#define SysTick_VAL 0xE000E018u

#define NVIC_ISER 0xE000E100u
#define NVIC_ICER 0xE000E180u
#define NVIC_ICPR 0xE000E280u

#define SCB_ICSR 0xE000ED04u
#define SCB_ICSR_PENDSTCLR_Msk (1u << 25)
#define SCB_ICSR_PENDSVCLR_Msk (1u << 27)
#define SCB_VTOR 0xE000ED08u
#define SCB_AIRCR 0xE000ED0Cu
#define SCB_AIRCR_VECTKEY_Pos 16u
#define SCB_AIRCR_SYSRESETREQ_Msk (1u << 2)
#define SCB_SCR 0xE000ED10u
#define SCB_SCR_SLEEPONEXIT_Msk (1u << 1)
#define SCB_SCR_SLEEPDEEP_Msk (1u << 2)
#define SCB_CCR 0xE000ED14u
#define SCB_CCR_UNALIGN_TRP_Msk (1u << 3)
#ifdef THIMBLE_LOADED
#define FPU_FPCCR 0xE000EF34u
#define FPU_FPCCR_LSPACT_Msk (1u << 0)
#define SAU_RNR 0xE000EDD8u
#define SAU_RBAR 0xE000EDDCu
#define SAU_RLAR 0xE000EDE0u
#endif
#ifndef __ARM_ARCH_6M__ /* which has one kind of fault, no DWT that code can reach, and no FPU */
#define SCB_CFSR 0xE000ED28u
#define SCB_CFSR_MSTKERR_Msk (1u << 4)
#define SCB_CFSR_STKERR_Msk (1u << 12)
#ifndef __ARM_ARCH_7M__ /* an M3 has no FPU */
#define SCB_CFSR_MLSPERR_Msk (1u << 5)
#define SCB_CFSR_LSPERR_Msk (1u << 13)
#endif
#define SCB_HFSR 0xE000ED2Cu
#define SCB_MMFAR 0xE000ED34u
#define SCB_BFAR 0xE000ED38u
#define SCB_CPACR 0xE000ED88u

#define DCB_DEMCR 0xE000EDFCu
#define DCB_DEMCR_TRCENA_Msk (1u << 24)

#define DWT_CTRL 0xE0001000u
#define DWT_CTRL_CYCCNTENA_Msk (1u << 0)
#define DWT_CYCCNT 0xE0001004u
#endif

#ifndef THIMBLE_NO_MPU /* an STM32F1 */
#define MPU_TYPE 0xE000ED90u
#define MPU_TYPE_DREGION_Pos 8u
#define MPU_TYPE_DREGION_Msk (0xFFu << 8)
#define MPU_CTRL 0xE000ED94u
#define MPU_CTRL_ENABLE_Msk (1u << 0)
#define MPU_CTRL_PRIVDEFENA_Msk (1u << 2)
#define MPU_RNR 0xE000ED98u
#define MPU_RBAR 0xE000ED9Cu
#endif

#endif
