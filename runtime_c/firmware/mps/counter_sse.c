#include "thimble_board.h"
#include "thimble_cortex_m.h"

/* SSE-300 system counter (Arm 101773): the control frame starts it, the status frame shows it. */
void thimble_counter_init(void)
{
    THIMBLE_REGISTER(0x58100000u) = 0u; /* CNTCR.EN */
    THIMBLE_REGISTER(0x58100008u) = 0u; /* CNTCV, low and high word */
    THIMBLE_REGISTER(0x5810000Cu) = 0u;
    THIMBLE_REGISTER(0x58100000u) = 1u;
}
