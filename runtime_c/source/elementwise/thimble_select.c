/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_choice.h"
#include "thimble_run.h"

void thimble_select(const thimble_select_params *params,
                    const uint8_t *condition,
                    const void *yes,
                    const void *no,
                    void *output)
{
    const int8_t *left = (const int8_t *)yes;
    const int8_t *right = (const int8_t *)no;
    int8_t *to = (int8_t *)output;
    for (int32_t i = 0; i < params->size; i++) {
        thimble_copy_run(to, *condition != 0 ? left : right, params->run_bytes);
        condition += params->step_condition;
        left += params->step_yes * params->run_bytes;
        right += params->step_no * params->run_bytes;
        to += params->run_bytes;
    }
}
