/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a firmware might put around each operator: here a log of begins (+) and ends (-).
 */
#ifndef HOOKS_H
#define HOOKS_H

#include <stdint.h>

void log_event(int32_t number);

#define THIMBLE_OP_BEGIN(index) log_event((index) + 1)
#define THIMBLE_OP_END(index) log_event(-((index) + 1))

#endif
