/* SPDX-License-Identifier: Apache-2.0 */
#define STATE int8_t
#define LEAST INT8_MIN
#define MOST INT8_MAX
#define MOVE_DOWN thimble_move_down_s8
#define FILTERED thimble_svdf_dot
#define SVDF thimble_svdf_s8
#include "thimble_svdf_body.h"
