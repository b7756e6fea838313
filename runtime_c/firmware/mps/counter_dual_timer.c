#include "thimble_board.h"
#include "thimble_cortex_m.h"

/* CMSDK dual-input timer (Arm DDI 0479, 4.5), timer 1: free running, 32 bits, counting down. */
void thimble_counter_init(void)
{
    THIMBLE_REGISTER(0x40002008u) = 0u;          /* TIMER1CONTROL: stop */
    THIMBLE_REGISTER(0x40002000u) = 0xFFFFFFFFu; /* TIMER1LOAD */
    THIMBLE_REGISTER(0x40002008u) = 0x82u;       /* TIMER1CONTROL: enable, 32 bits */
}
