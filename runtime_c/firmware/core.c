/* SPDX-License-Identifier: Apache-2.0 */
/* The core's own peripherals: a known state, and memory that nobody may touch. */
#include "thimble_cortex_m.h"

#ifdef __ARM_ARCH_6M__
#define INTERRUPT_WORDS 1u /* 32 interrupts */
#else
#define INTERRUPT_WORDS 8u /* 256 interrupts; words that a core lacks read as zero and ignore writes */
#endif

#if !defined(__ARM_ARCH_8M_MAIN__) && !defined(__ARM_ARCH_8_1M_MAIN__)
#include "registers_armv7m.h"

#ifndef THIMBLE_NO_MPU
/* Where regions overlap, the last counts. */
enum { REGION_BELOW_STACK, REGION_EXTERNAL, REGION_CONSTANTS };

#define READ_ONLY (6u << MPU_RASR_AP_Pos) /* for all; no bits at all refuse every access */

/* Nothing is executed from the region's 2^size_log2 bytes; `access`: more bits of RASR. `subregions_off`: one
 * bit for each eighth that stays as it is. */
static void
set_region(uint32_t region, uint32_t start, uint32_t size_log2, uint32_t subregions_off, uint32_t access)
{
    THIMBLE_REGISTER(MPU_RNR) = region;
    THIMBLE_REGISTER(MPU_RBAR) = start;
    THIMBLE_REGISTER(MPU_RASR) = MPU_RASR_XN_Msk | (subregions_off << MPU_RASR_SRD_Pos) | access |
                                 ((size_log2 - 1u) << MPU_RASR_SIZE_Pos) | MPU_RASR_ENABLE_Msk;
    THIMBLE_REGISTER(MPU_CTRL) = MPU_CTRL_PRIVDEFENA_Msk | MPU_CTRL_ENABLE_Msk;
    thimble_barrier();
}

void thimble_mpu_guard(uint32_t start, uint32_t size_log2)
{
    set_region(REGION_BELOW_STACK, start, size_log2, 0, 0);
}

/* All of 4 GB but the eighths below 0x60000000 and above 0xDFFFFFFF (ST AN4838, and Arm's advice for the M7).
 */
void thimble_mpu_refuse_external(void)
{
    set_region(REGION_EXTERNAL, 0, 32u, 0x87u, 0);
}

/* Normal memory, written through (Arm DDI 0403 B3.5.9: TEX 0, C 1, B 0). */
void thimble_mpu_allow_constants(uint32_t start, uint32_t size_log2)
{
    set_region(REGION_CONSTANTS, start, size_log2, 0, READ_ONLY | MPU_RASR_C_Msk);
}
#endif

/* Registers of the FPU that an interrupt was to save, and has not, are no longer wanted. A core that runs
 * code for Armv6-M refuses unaligned data, as those of Armv6-M always do. */
static void settle_units(void)
{
#ifdef __ARM_ARCH_6M__
    THIMBLE_REGISTER(SCB_CCR) |= SCB_CCR_UNALIGN_TRP_Msk;
#elif !defined(__ARM_ARCH_7M__)
    THIMBLE_REGISTER(FPU_FPCCR) = FPU_FPCCR_ASPEN_Msk | FPU_FPCCR_LSPEN_Msk;
#endif
#ifndef THIMBLE_NO_MPU
    THIMBLE_REGISTER(MPU_CTRL) = 0;
    const uint32_t regions = (THIMBLE_REGISTER(MPU_TYPE) & MPU_TYPE_DREGION_Msk) >> MPU_TYPE_DREGION_Pos;
    for (uint32_t region = 0; region < regions; region++) {
        THIMBLE_REGISTER(MPU_RNR) = region;
        THIMBLE_REGISTER(MPU_RASR) = 0;
    }
#endif
}
#else
static void settle_units(void)
{
#ifdef THIMBLE_LOADED
    /* Started again from a fault: registers that the exception was to save, and has not, are no longer
     * wanted. */
    THIMBLE_REGISTER(FPU_FPCCR) &= ~FPU_FPCCR_LSPACT_Msk;
#endif
    THIMBLE_REGISTER(MPU_CTRL) = 0;
}
#endif

void thimble_core_settle(void)
{
    THIMBLE_REGISTER(SysTick_CTRL) = 0;
    for (uint32_t i = 0; i < INTERRUPT_WORDS; i++) {
        THIMBLE_REGISTER(NVIC_ICER + 4u * i) = 0xFFFFFFFFu;
        THIMBLE_REGISTER(NVIC_ICPR + 4u * i) = 0xFFFFFFFFu;
    }
    THIMBLE_REGISTER(SCB_ICSR) = SCB_ICSR_PENDSTCLR_Msk | SCB_ICSR_PENDSVCLR_Msk;
    THIMBLE_REGISTER(SCB_SCR) &= ~(SCB_SCR_SLEEPONEXIT_Msk | SCB_SCR_SLEEPDEEP_Msk);
    settle_units();
    thimble_barrier();
}
