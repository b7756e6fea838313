/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_board.h"
#include "thimble_cortex_m.h"

#ifdef THIMBLE_CORTEX_M7
#include "registers_cortex_m7.h"

#define UNLOCK 0xC5ACCE55u /* Arm DDI 0403 C1.8.1, CoreSight's lock */
#endif

/* DWT cycle counter (Arm DDI 0403 C1.8): counts core clock cycles, 32 bits. */
void thimble_counter_init(void)
{
    THIMBLE_REGISTER(DCB_DEMCR) |= DCB_DEMCR_TRCENA_Msk;
#ifdef THIMBLE_CORTEX_M7
    THIMBLE_REGISTER(DWT_LAR) = UNLOCK;
#endif
    THIMBLE_REGISTER(DWT_CTRL) &= ~DWT_CTRL_CYCCNTENA_Msk;
    THIMBLE_REGISTER(DWT_CYCCNT) = 0;
    THIMBLE_REGISTER(DWT_CTRL) |= DWT_CTRL_CYCCNTENA_Msk;
}
