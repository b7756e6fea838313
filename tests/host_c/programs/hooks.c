/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a model whose hooks log; prints the log.
 */
#include "hooks.h"

#include <stdio.h>

#include "hooked.h"

void log_event(int32_t number)
{
    printf("%+d ", (int)number);
}

int main(void)
{
    const int32_t status = hooked_run(hooked_arena());

    printf("%d %d\n", (int)status, HOOKED_OPERATORS);
    return 0;
}
