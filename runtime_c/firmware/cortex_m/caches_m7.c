/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_stm32.h"

#define SCB_CCR_DC (1u << 16)
#define SCB_CCR_IC (1u << 17)
#define SCB_CCSIDR THIMBLE_REGISTER(0xE000ED80u)
#define SCB_CSSELR THIMBLE_REGISTER(0xE000ED84u)
#define SCB_ICIALLU THIMBLE_REGISTER(0xE000EF50u)
#define SCB_DCISW THIMBLE_REGISTER(0xE000EF60u)

/* Arm DDI 0403 B2.2.7 and B3.2.2: both caches hold garbage after reset. Nothing else masters the
 * memory that the core caches, so no region needs to stay out of them. */
void thimble_m7_caches_enable(void)
{
    SCB_ICIALLU = 0;
    thimble_barrier();
    THIMBLE_SCB_CCR |= SCB_CCR_IC;
    thimble_barrier();

    SCB_CSSELR = 0; /* level 1, data */
    thimble_barrier();
    const uint32_t geometry = SCB_CCSIDR;
    const uint32_t last_set = (geometry >> 13) & 0x7FFFu;
    const uint32_t last_way = (geometry >> 3) & 0x3FFu;
    for (uint32_t set = 0; set <= last_set; set++) {
        for (uint32_t way = 0; way <= last_way; way++) {
            SCB_DCISW = (set << 5) | (way << 30); /* 32-byte lines, four ways */
        }
    }
    thimble_barrier();
    THIMBLE_SCB_CCR |= SCB_CCR_DC;
    thimble_barrier();
}
