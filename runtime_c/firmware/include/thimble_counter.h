/* SPDX-License-Identifier: Apache-2.0 */
/* The free-running counter that measures inference: a 32-bit register that counts up or down, or more than
 * 32 bits where the board's counter source reads them. */
#ifndef THIMBLE_COUNTER_H
#define THIMBLE_COUNTER_H

#include <stdint.h>

#ifdef THIMBLE_COUNTER_WIDE
typedef uint64_t thimble_count;

thimble_count thimble_counter(void);
#else
typedef uint32_t thimble_count;

static inline thimble_count thimble_counter(void)
{
    const uint32_t now = *(const volatile uint32_t *)THIMBLE_COUNTER_REGISTER;
#ifdef THIMBLE_COUNTER_DOWN
    return 0u - now;
#else
    return now;
#endif
}
#endif

#endif
