/* A model whose arena is where the first input byte says: 0 where it belongs, 1 at an odd address, 2 nowhere.
 * 8 input bytes at 0, 8 output bytes at 8, which nobody writes. */
#include "net.h"

#include <stddef.h>

int32_t misplaced_run(uint8_t *ends);

int32_t misplaced_run(uint8_t *ends)
{
    static uint8_t arena[NET_ARENA_BYTES + 8] __attribute__((aligned(8)));

    switch (ends[0]) {
    case 1:
        return net_run(arena + 1);
    case 2:
        return net_run(NULL);
    default:
        return net_run(arena);
    }
}
