/* SPDX-License-Identifier: Apache-2.0 */
/* STM32N6 (RM0486), in the Secure state, as the boot ROM starts an image: full speed from the internal 64 MHz
 * oscillator, so that no crystal matters; both caches. USART1 runs on that oscillator directly. The core's
 * supply stays as it is after a reset, in voltage scale 1. */
#include "registers_n6.h"
#include "thimble_board.h"
#include "thimble_firmware.h"
#include "thimble_stm32.h"

#define SAU_REGIONS 8u

#define PLLS_READY (RCC_SR_PLL1RDY | RCC_SR_PLL2RDY | RCC_SR_PLL3RDY | RCC_SR_PLL4RDY)

/* IC1 for the core; IC2 for the buses, IC6 for the NPU and IC11 for its memories, which are switched at once.
 */
#define ON_IC (RCC_CFGR1_CPUSW | RCC_CFGR1_SYSSW)
#define IS_ON_IC (RCC_CFGR1_CPUSWS | RCC_CFGR1_SYSSWS)

/* 1, 2, 4, 8 or 16 */
#define AHB_CODE(divider)                                                                                    \
    ((divider) == 1u ? 0u : (divider) == 2u ? 1u : (divider) == 4u ? 2u : (divider) == 8u ? 3u : 4u)

/* Onto the internal oscillator, undivided and as it was calibrated, with nothing else running: the boot ROM
 * runs before the firmware. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CSR) = RCC_CSR_HSIONS;
    thimble_wait_set(RCC_SR, RCC_SR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR1) = 0;
    thimble_wait_clear(RCC_CFGR1, RCC_CFGR1_CPUSWS | RCC_CFGR1_SYSSWS);
    THIMBLE_REGISTER(RCC_CCR) = RCC_CCR_MSIONC | RCC_CCR_HSEONC | RCC_CCR_PLL1ONC | RCC_CCR_PLL2ONC |
                                RCC_CCR_PLL3ONC | RCC_CCR_PLL4ONC;
    thimble_wait_clear(RCC_SR, PLLS_READY);
    THIMBLE_REGISTER(RCC_HSICFGR) &= ~(RCC_HSICFGR_HSIDIV | RCC_HSICFGR_HSITRIM);
    thimble_wait_set(RCC_SR, RCC_SR_HSIRDY);
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

/* 64 MHz / M x N, with the two dividers behind the VCO at 1. */
static void pll_up(void)
{
    const uint32_t outputs = (1u << RCC_PLL1CFGR3_PLL1PDIV1_Pos) | (1u << RCC_PLL1CFGR3_PLL1PDIV2_Pos);
    THIMBLE_REGISTER(RCC_PLL1CFGR3) = RCC_PLL1CFGR3_PLL1MODSSDIS | outputs;
    THIMBLE_REGISTER(RCC_PLL1CFGR1) = (THIMBLE_PLL_M << RCC_PLL1CFGR1_PLL1DIVM_Pos) |
                                      (THIMBLE_PLL_N << RCC_PLL1CFGR1_PLL1DIVN_Pos); /* of the HSI */
    THIMBLE_REGISTER(RCC_PLL1CFGR2) = 0;                                             /* a whole N */
    THIMBLE_REGISTER(RCC_PLL1CFGR3) =
        RCC_PLL1CFGR3_PLL1MODSSDIS | outputs | RCC_PLL1CFGR3_PLL1MODSSRST | RCC_PLL1CFGR3_PLL1PDIVEN;
    THIMBLE_REGISTER(RCC_CSR) = RCC_CSR_PLL1ONS;
    thimble_wait_set(RCC_SR, RCC_SR_PLL1RDY);
}

/* All of PLL1. The AHBs and APBs run at a fraction of the buses' clock. */
static void divide(void)
{
    THIMBLE_REGISTER(RCC_IC1CFGR) = (THIMBLE_PLL_P - 1u) << RCC_IC1CFGR_IC1INT_Pos;
    THIMBLE_REGISTER(RCC_IC2CFGR) = (THIMBLE_AXI_DIVIDER - 1u) << RCC_IC2CFGR_IC2INT_Pos;
    THIMBLE_REGISTER(RCC_IC6CFGR) = (THIMBLE_AXI_DIVIDER - 1u) << RCC_IC6CFGR_IC6INT_Pos;
    THIMBLE_REGISTER(RCC_IC11CFGR) = (THIMBLE_AXI_DIVIDER - 1u) << RCC_IC11CFGR_IC11INT_Pos;
    THIMBLE_REGISTER(RCC_DIVENSR) =
        RCC_DIVENSR_IC1ENS | RCC_DIVENSR_IC2ENS | RCC_DIVENSR_IC6ENS | RCC_DIVENSR_IC11ENS;
    THIMBLE_REGISTER(RCC_CFGR2) = AHB_CODE(THIMBLE_AHB_DIVIDER) << RCC_CFGR2_HPRE_Pos;
}

/* RAM has ECC, which is wrong for every word until it is written once. */
static void forget_after_power_on(void)
{
    if ((THIMBLE_REGISTER(RCC_RSR) & (RCC_RSR_PORRSTF | RCC_RSR_BORRSTF)) != 0) {
        thimble_fault_forget();
    }
    THIMBLE_REGISTER(RCC_RSR) |= RCC_RSR_RMVF;
}

/* As ST's SystemInit does before all (system_stm32n6xx_fsbl.c:132 of hal_stm32): the boot ROM may leave
 * regions that are not Secure. */
static void all_secure(void)
{
    for (uint32_t region = 0; region < SAU_REGIONS; region++) {
        THIMBLE_REGISTER(SAU_RNR) = region;
        THIMBLE_REGISTER(SAU_RBAR) = 0;
        THIMBLE_REGISTER(SAU_RLAR) = 0;
    }
    thimble_barrier();
}

void thimble_board_init(void)
{
    all_secure();
    thimble_clock_enable(RCC_MISCENR, RCC_MISCENR_DBGEN);
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* a probe reaches the core in its sleep */
    forget_after_power_on();
    settle_clocks();
    /* What feeds the core may be told once after power-on and is not known: it stays as it is, and is ready.
     */
    thimble_wait_set(PWR_VOSCR, PWR_VOSCR_ACTVOSRDY);
    pll_up();
    divide();
    THIMBLE_REGISTER(RCC_CFGR1) = ON_IC;
    thimble_wait_for(RCC_CFGR1, RCC_CFGR1_CPUSWS | RCC_CFGR1_SYSSWS, IS_ON_IC);
    thimble_clock_enable(RCC_MEMENR, RCC_MEMENR_AXISRAM1EN);
    thimble_replace(RCC_CCIPR13, RCC_CCIPR13_USART1SEL, RCC_CCIPR13_USART1SEL_2 | RCC_CCIPR13_USART1SEL_1);
    thimble_caches_enable();
}

uint32_t thimble_board_clock_hz(void)
{
    if ((THIMBLE_REGISTER(RCC_CFGR1) & RCC_CFGR1_CPUSWS) != RCC_CFGR1_CPUSWS) {
        return 64000000u;
    }
    return 64000000u / thimble_field(RCC_PLL1CFGR1, RCC_PLL1CFGR1_PLL1DIVM) *
           thimble_field(RCC_PLL1CFGR1, RCC_PLL1CFGR1_PLL1DIVN) /
           thimble_field(RCC_PLL1CFGR3, RCC_PLL1CFGR3_PLL1PDIV1) /
           thimble_field(RCC_PLL1CFGR3, RCC_PLL1CFGR3_PLL1PDIV2) /
           (thimble_field(RCC_IC1CFGR, RCC_IC1CFGR_IC1INT) + 1u);
}
