/* net, run in steps: in each run others, from one call a step to all calls in one. */
#include "net.h"

int32_t stepped_run(uint8_t *arena);

static int32_t every_third(void *context)
{
    uint32_t *const asked = context;

    return ++*asked % 3 != 0;
}

int32_t stepped_run(uint8_t *arena)
{
    static const uint32_t budgets[] = {0, NET_LONGEST_STEP_CYCLES / 20, NET_LONGEST_STEP_CYCLES, UINT32_MAX};
    static uint32_t runs;
    const uint32_t kind = runs++ % 5;
    net_progress progress;
    int32_t status = net_start(&progress, arena);
    uint32_t asked = 0;
    int32_t steps = 0;

    while (status == NET_OK || status == NET_AGAIN) {
        status =
            kind < 4 ? net_step(&progress, budgets[kind]) : net_step_while(&progress, every_third, &asked);
        steps++;
        if (status == NET_OK) {
            break;
        }
    }
    if (status == NET_OK && ((kind == 0 && steps != NET_STEPS) || (kind == 3 && steps != 1))) {
        return 1;
    }
    return status;
}
