/* SPDX-License-Identifier: Apache-2.0 */
#define STATE int16_t
#define LEAST INT16_MIN
#define MOST INT16_MAX
#define MOVE_DOWN thimble_move_down_s16
#define FILTERED thimble_svdf_dot_s16
#define SVDF thimble_svdf_s16_s8
#include "thimble_svdf_body.h"
