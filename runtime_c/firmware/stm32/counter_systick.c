/* SPDX-License-Identifier: Apache-2.0 */
/* Cycles of a core without DWT. SysTick counts 24 bits of them, down; TIM3, which runs at the core's clock
 * because no bus is divided, counts each 65536th to tell how often SysTick has wrapped. So no interrupt
 * disturbs what is measured.
 */
#include "registers_tim3.h"
#include "thimble_board.h"
#include "thimble_counter.h"
#include "thimble_stm32.h"

#define COARSE_LOG2 16u
#define FINE_LOG2 24u
#define FINE_HALF (1u << (FINE_LOG2 - 1u))

static thimble_count counted;

void thimble_counter_init(void)
{
    thimble_clock_enable(THIMBLE_TIM3_ENABLE, THIMBLE_TIM3_ENABLE_BITS);
    THIMBLE_REGISTER(TIM3_CR1) = 0;
    THIMBLE_REGISTER(TIM3_PSC) = (1u << COARSE_LOG2) - 1u;
    THIMBLE_REGISTER(TIM3_ARR) = 0xFFFFu;
    THIMBLE_REGISTER(TIM3_EGR) = TIM_EGR_UG; /* loads the prescaler, and clears the count */
    THIMBLE_REGISTER(SysTick_CTRL) = 0;
    THIMBLE_REGISTER(SysTick_LOAD) = SysTick_LOAD_RELOAD_Msk;
    THIMBLE_REGISTER(SysTick_VAL) = 0; /* whatever is written */
    THIMBLE_REGISTER(TIM3_CR1) = TIM_CR1_CEN;
    THIMBLE_REGISTER(SysTick_CTRL) = SysTick_CTRL_CLKSOURCE_Msk | SysTick_CTRL_ENABLE_Msk;
    counted = 0;
}

/* Exact while the two are less than half of SysTick's period apart, which is 128 steps of TIM3. The bits
 * beyond 32 come from the calls themselves: the begin and the end of each operator. */
thimble_count thimble_counter(void)
{
    const uint32_t fine = SysTick_LOAD_RELOAD_Msk - THIMBLE_REGISTER(SysTick_VAL);
    const uint32_t coarse = THIMBLE_REGISTER(TIM3_CNT) << COARSE_LOG2;
    const uint32_t wraps = (coarse + FINE_HALF - fine) >> FINE_LOG2;
    const uint32_t now = (wraps << FINE_LOG2) | fine;
    counted += (uint32_t)(now - (uint32_t)counted);
    return counted;
}
