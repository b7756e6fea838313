/* SPDX-License-Identifier: Apache-2.0 */
#include "registers_icache.h"
#include "thimble_stm32.h"

void thimble_stm32_icache_enable(void)
{
    thimble_wait_clear(ICACHE_SR, ICACHE_SR_BUSYF); /* a reset empties it too */
    THIMBLE_REGISTER(ICACHE_FCR) = ICACHE_FCR_CBSYENDF;
    THIMBLE_REGISTER(ICACHE_CR) |= ICACHE_CR_CACHEINV;
    thimble_wait_set(ICACHE_SR, ICACHE_SR_BSYENDF);
    THIMBLE_REGISTER(ICACHE_FCR) = ICACHE_FCR_CBSYENDF;
    THIMBLE_REGISTER(ICACHE_CR) |= ICACHE_CR_EN;
}
