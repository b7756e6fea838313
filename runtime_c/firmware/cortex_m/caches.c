/* SPDX-License-Identifier: Apache-2.0 */
/* The caches of a Cortex-M7 and an M55 (Arm DDI 0403 B2.2.7, B3.2.3; DDI 0553 D1.2): 32-byte lines, the data
 * cache of four ways. */
#include "registers_caches.h"
#include "thimble_cortex_m.h"

/* Writes the name of every line of the data cache to a maintenance register. */
static void for_all_lines(uint32_t operation)
{
    THIMBLE_REGISTER(SCB_CSSELR) = 0; /* level 1, data */
    thimble_barrier();
    const uint32_t geometry = THIMBLE_REGISTER(SCB_CCSIDR);
    const uint32_t last_set = (geometry & SCB_CCSIDR_NUMSETS_Msk) >> SCB_CCSIDR_NUMSETS_Pos;
    const uint32_t last_way = (geometry & SCB_CCSIDR_ASSOCIATIVITY_Msk) >> SCB_CCSIDR_ASSOCIATIVITY_Pos;
    for (uint32_t set = 0; set <= last_set; set++) {
        for (uint32_t way = 0; way <= last_way; way++) {
            THIMBLE_REGISTER(operation) = (set << SCB_DCISW_SET_Pos) | (way << SCB_DCISW_WAY_Pos);
        }
    }
    thimble_barrier();
}

/* Both hold garbage after reset; a data cache that is on already holds what must not be thrown away. Nothing
 * else masters the memory that the core caches, so no region needs to stay out of them. */
void thimble_caches_enable(void)
{
    thimble_barrier();
    THIMBLE_REGISTER(SCB_ICIALLU) = 0;
    thimble_barrier();
    THIMBLE_REGISTER(SCB_CCR) |= SCB_CCR_IC_Msk;
    thimble_barrier();
    if ((THIMBLE_REGISTER(SCB_CCR) & SCB_CCR_DC_Msk) == 0) {
        for_all_lines(SCB_DCISW);
        THIMBLE_REGISTER(SCB_CCR) |= SCB_CCR_DC_Msk;
        thimble_barrier();
    }
}

/* A reset throws away what has not been written back. */
void thimble_cache_clean(void)
{
    if ((THIMBLE_REGISTER(SCB_CCR) & SCB_CCR_DC_Msk) != 0) {
        thimble_barrier();
        for_all_lines(SCB_DCCSW);
    }
}

/* What is read next comes from memory. */
void thimble_cache_empty(void)
{
    thimble_barrier();
    if ((THIMBLE_REGISTER(SCB_CCR) & SCB_CCR_DC_Msk) != 0) {
        for_all_lines(SCB_DCCISW);
    }
    THIMBLE_REGISTER(SCB_ICIALLU) = 0;
    thimble_barrier();
}
