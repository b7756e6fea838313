/* SPDX-License-Identifier: Apache-2.0 */
/* STM32H723 (RM0468), H743 (RM0433), H755 (RM0399; the Cortex-M7) and H7A3 (RM0455): full speed from the
 * internal 64 MHz oscillator, so that no crystal or solder bridge matters; both caches. The UART runs on that
 * oscillator directly. */
#include "registers_h7.h"
#include "thimble_board.h"
#include "thimble_firmware.h"
#include "thimble_stm32.h"

#if defined(THIMBLE_H7A3) || defined(THIMBLE_H755)
#define SUPPLY_FIELDS                                                                                        \
    (PWR_CR3_BYPASS | PWR_CR3_LDOEN | PWR_CR3_SMPSEN | PWR_CR3_SMPSEXTHP | PWR_CR3_SMPSLEVEL)
#else
#define SUPPLY_FIELDS (PWR_CR3_BYPASS | PWR_CR3_LDOEN | PWR_CR3_SCUEN)
#endif

#ifdef THIMBLE_H7A3
#define VOLTAGE PWR_SRDCR
#define VOLTAGE_FIELD PWR_SRDCR_VOS
#define VOLTAGE_HIGHEST PWR_SRDCR_VOS /* 11 is scale 0 (RM0455 6.8.9) */
#define VOLTAGE_READY PWR_SRDCR_VOSRDY
#define UART_CLOCK RCC_CDCCIP2R
#define UART_CLOCK_FIELD RCC_CDCCIP2R_USART234578SEL
#define UART_CLOCK_HSI (RCC_CDCCIP2R_USART234578SEL_1 | RCC_CDCCIP2R_USART234578SEL_0)
#define DEBUG_IN_SLEEP DBGMCU_CR_DBG_SLEEPCD
#define HIGH_FREQUENCY (FLASH_ACR_WRHIGHFREQ_1 | FLASH_ACR_WRHIGHFREQ_0) /* RM0455 4.3.8, 280 MHz on AXI */
#else
#define VOLTAGE PWR_D3CR
#define VOLTAGE_FIELD PWR_D3CR_VOS
#define VOLTAGE_READY PWR_D3CR_VOSRDY
#define UART_CLOCK RCC_D2CCIP2R
#define UART_CLOCK_FIELD RCC_D2CCIP2R_USART28SEL
#define UART_CLOCK_HSI (RCC_D2CCIP2R_USART28SEL_1 | RCC_D2CCIP2R_USART28SEL_0)
#define DEBUG_IN_SLEEP DBGMCU_CR_DBG_SLEEPD1
#ifdef THIMBLE_H723
#define VOLTAGE_HIGHEST 0u /* scale 0 (PWR_REGULATOR_VOLTAGE_SCALE0 of stm32h7xx_hal_pwr_ex.h) */
#define HIGH_FREQUENCY (FLASH_ACR_WRHIGHFREQ_1 | FLASH_ACR_WRHIGHFREQ_0) /* RM0468 4.3.8, 275 MHz on AXI */
#else
#define VOLTAGE_HIGHEST PWR_D3CR_VOS          /* 11 is scale 1 (RM0433 6.8.6, RM0399) */
#define HIGH_FREQUENCY FLASH_ACR_WRHIGHFREQ_1 /* RM0433 4.3.8, 240 MHz on AXI */
#endif
#endif

#define FLASH_TIMING (THIMBLE_FLASH_WAIT_STATES | HIGH_FREQUENCY)

/* The largest multiplier of what goes into the VCO that makes `core_mhz` or less. */
#define LIMITED_TO(core_mhz) (THIMBLE_PLL_P * THIMBLE_PLL_M * (core_mhz) / 64u)

/* 64 MHz / M is 2 to 4, 4 to 8 or 8 to 16 MHz. */
#define INPUT_RANGE (THIMBLE_PLL_M <= 8u ? 3u : THIMBLE_PLL_M <= 16u ? 2u : 1u)

#ifdef GPV_AXI_TARG7_FN_MOD
/* REV_ID of DBGMCU_IDCODE (RM0433 60.5.8): Z 0x1001, Y 0x1003, X 0x2001, V 0x2003. */
#define REVISION_X 0x2001u
#define REVISION_V 0x2003u

static uint32_t revision(void)
{
    return THIMBLE_REGISTER(DBGMCU_IDCODE) >> DBGMCU_IDCODE_REV_ID_Pos;
}
#endif

/* The oscillator as it was calibrated, whatever a boot loader left. The H743 of revisions Z and Y has the
 * field elsewhere (__HAL_RCC_HSI_CALIBRATIONVALUE_ADJUST), and keeps what it has. */
static void untrim(void)
{
#ifdef GPV_AXI_TARG7_FN_MOD
    if (revision() < REVISION_X) {
        return;
    }
#endif
    thimble_replace(RCC_HSICFGR, RCC_HSICFGR_HSITRIM, RCC_HSICFGR_HSITRIM_6);
}

/* Onto the internal oscillator, undivided, with nothing else running. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = 0;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_HSI);
    THIMBLE_REGISTER(RCC_CR) &=
        ~(RCC_CR_HSEON | RCC_CR_CSION | RCC_CR_HSI48ON | RCC_CR_PLL1ON | RCC_CR_PLL2ON | RCC_CR_PLL3ON);
    thimble_wait_clear(RCC_CR, RCC_CR_PLL1RDY | RCC_CR_PLL2RDY | RCC_CR_PLL3RDY);
    THIMBLE_REGISTER(RCC_CR) &= ~RCC_CR_HSIDIV;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    untrim();
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

static void power_up(void)
{
    /* The supply must be confirmed once after power-on before VOS may change. */
    thimble_replace(PWR_CR3, SUPPLY_FIELDS, THIMBLE_PWR_SUPPLY);
    thimble_wait_set(PWR_CSR1, PWR_CSR1_ACTVOSRDY);
    thimble_replace(VOLTAGE, VOLTAGE_FIELD, VOLTAGE_HIGHEST);
    thimble_wait_set(VOLTAGE, VOLTAGE_READY);
    thimble_wait_set(PWR_CSR1, PWR_CSR1_ACTVOSRDY);
}

/* The multiplier of what goes into the VCO: that of the board, or less where the chip cannot do as much. */
static uint32_t pll_multiplier(void)
{
    uint32_t most = THIMBLE_PLL_N;
#if defined(THIMBLE_H723)
    /* An option byte allows 550 MHz, and takes the ECC of the tightly coupled memories for it. */
    thimble_clock_enable(RCC_APB4ENR, RCC_APB4ENR_SYSCFGEN);
    if ((THIMBLE_REGISTER(SYSCFG_UR18) & SYSCFG_UR18_CPU_FREQ_BOOST) == 0) {
        most = LIMITED_TO(520u);
    }
#elif !defined(THIMBLE_H7A3) && !defined(THIMBLE_H755) /* there is scale 0 with the LDO only */
    if (revision() < REVISION_V) {
        most = LIMITED_TO(400u);
    } else {
        /* From scale 1 to scale 0, as HAL_PWREx_ControlVoltageScaling does. */
        thimble_clock_enable(RCC_APB4ENR, RCC_APB4ENR_SYSCFGEN);
        THIMBLE_REGISTER(SYSCFG_PWRCR) |= SYSCFG_PWRCR_ODEN;
        (void)THIMBLE_REGISTER(SYSCFG_PWRCR);
        thimble_wait_set(VOLTAGE, VOLTAGE_READY);
        thimble_wait_set(PWR_CSR1, PWR_CSR1_ACTVOSRDY);
    }
#endif
    return most < THIMBLE_PLL_N ? most : THIMBLE_PLL_N;
}

static void pll_up(uint32_t multiplier)
{
    thimble_replace(RCC_PLLCKSELR, RCC_PLLCKSELR_PLLSRC | RCC_PLLCKSELR_DIVM1,
                    RCC_PLLCKSELR_PLLSRC_HSI | (THIMBLE_PLL_M << RCC_PLLCKSELR_DIVM1_Pos));
    thimble_replace(RCC_PLLCFGR,
                    RCC_PLLCFGR_PLL1FRACEN | RCC_PLLCFGR_PLL1VCOSEL | RCC_PLLCFGR_PLL1RGE |
                        RCC_PLLCFGR_DIVP1EN | RCC_PLLCFGR_DIVQ1EN | RCC_PLLCFGR_DIVR1EN,
                    (INPUT_RANGE << RCC_PLLCFGR_PLL1RGE_Pos) | RCC_PLLCFGR_DIVP1EN); /* wide VCO, P on */
    THIMBLE_REGISTER(RCC_PLL1DIVR) =
        ((multiplier - 1u) << RCC_PLL1DIVR_N1_Pos) | ((THIMBLE_PLL_P - 1u) << RCC_PLL1DIVR_P1_Pos) |
        (3u << RCC_PLL1DIVR_Q1_Pos) | (1u << RCC_PLL1DIVR_R1_Pos); /* Q 4 and R 2, which are off */
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLL1ON;
    thimble_wait_set(RCC_CR, RCC_CR_PLL1RDY);
}

/* Every bus within its limit: AXI and AHB at the core's clock (H7A3) or half of it, the APBs at half of that.
 */
static void divide_buses(void)
{
#ifdef THIMBLE_H7A3
    THIMBLE_REGISTER(RCC_CDCFGR1) = RCC_CDCFGR1_HPRE_DIV1 | RCC_CDCFGR1_CDPPRE_DIV2;
    THIMBLE_REGISTER(RCC_CDCFGR2) = RCC_CDCFGR2_CDPPRE1_DIV2 | RCC_CDCFGR2_CDPPRE2_DIV2;
    THIMBLE_REGISTER(RCC_SRDCFGR) = RCC_SRDCFGR_SRDPPRE_DIV2;
#else
    THIMBLE_REGISTER(RCC_D1CFGR) = RCC_D1CFGR_HPRE_DIV2 | RCC_D1CFGR_D1PPRE_DIV2;
    THIMBLE_REGISTER(RCC_D2CFGR) = RCC_D2CFGR_D2PPRE1_DIV2 | RCC_D2CFGR_D2PPRE2_DIV2;
    THIMBLE_REGISTER(RCC_D3CFGR) = RCC_D3CFGR_D3PPRE_DIV2;
#endif
}

/* RAM has ECC, which is wrong for every word until it is written once. */
static void forget_after_power_on(void)
{
    if ((THIMBLE_REGISTER(RCC_RSR) & (RCC_RSR_PORRSTF | RCC_RSR_BORRSTF)) != 0) {
        thimble_fault_forget();
    }
    THIMBLE_REGISTER(RCC_RSR) |= RCC_RSR_RMVF;
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(DBGMCU_CR) |= DEBUG_IN_SLEEP; /* a probe reaches the core in its sleep */
#ifdef GPV_AXI_TARG7_FN_MOD
    if (revision() < REVISION_X) {
        THIMBLE_REGISTER(GPV_AXI_TARG7_FN_MOD) = 1; /* reads of the AXI SRAM one at a time: ST's SystemInit */
    }
#endif
    forget_after_power_on();
    settle_clocks();
    power_up();
    pll_up(pll_multiplier());
    divide_buses();
    THIMBLE_REGISTER(FLASH_ACR) = FLASH_TIMING;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY | FLASH_ACR_WRHIGHFREQ, FLASH_TIMING);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_PLL1;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL1);
    thimble_replace(UART_CLOCK, UART_CLOCK_FIELD, UART_CLOCK_HSI);
    thimble_mpu_refuse_external();
    thimble_caches_enable();
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR, RCC_CFGR_SWS) != RCC_CFGR_SW_PLL1) {
        return 64000000u;
    }
    return 64000000u / thimble_field(RCC_PLLCKSELR, RCC_PLLCKSELR_DIVM1) *
           (thimble_field(RCC_PLL1DIVR, RCC_PLL1DIVR_N1) + 1u) /
           (thimble_field(RCC_PLL1DIVR, RCC_PLL1DIVR_P1) + 1u);
}
