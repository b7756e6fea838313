/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the traced model and its recorder: each operator says when it begins. The model's name is `traced`.
 */
#ifndef TRACE_HOOKS_H
#define TRACE_HOOKS_H

#include <stdint.h>

void trace_begin(int32_t index);
int32_t traced_run(uint8_t *arena);

#define THIMBLE_OP_BEGIN(index) trace_begin(index)

#endif
