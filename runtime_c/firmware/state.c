/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a model that keeps values from run to run. */
#include "thimble_firmware.h"

#include <stddef.h>

void thimble_state_reset(const thimble_model *model)
{
    if (model->reset != NULL) {
        model->reset(model->arena);
    }
}
