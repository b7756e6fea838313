/* The free-running counter that measures inference: a 32-bit register, counting up or down. */
#ifndef THIMBLE_COUNTER_H
#define THIMBLE_COUNTER_H

#include <stdint.h>

static inline uint32_t thimble_counter(void)
{
    const uint32_t now = *(const volatile uint32_t *)THIMBLE_COUNTER_REGISTER;
#ifdef THIMBLE_COUNTER_DOWN
    return 0u - now;
#else
    return now;
#endif
}

#endif
