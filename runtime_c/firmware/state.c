/* The state of a model that keeps values from run to run. */
#include "thimble_firmware.h"

#include <stddef.h>

void thimble_state_reset(void)
{
    if (thimble_the_model.reset != NULL) {
        thimble_the_model.reset(thimble_the_model.arena);
    }
}
