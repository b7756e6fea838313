/* SPDX-License-Identifier: Apache-2.0 */
/* Included before the generated model (gcc -include): counts each operator, and remembers which
 * one runs, so that a fault can be traced to it. */
#ifndef THIMBLE_FIRMWARE_HOOKS_H
#define THIMBLE_FIRMWARE_HOOKS_H

#include "thimble_counter.h"

extern thimble_count thimble_operator_counts[];
extern volatile thimble_count thimble_operator_mark;
extern volatile uint32_t thimble_operator_running; /* its index + 1, 0 between runs */

#define THIMBLE_OP_BEGIN(index)                                                                              \
    do {                                                                                                     \
        thimble_operator_running = (uint32_t)(index) + 1u;                                                   \
        thimble_operator_mark = thimble_counter();                                                           \
    } while (0)

#define THIMBLE_OP_END(index) (thimble_operator_counts[(index)] += thimble_counter() - thimble_operator_mark)

#endif
