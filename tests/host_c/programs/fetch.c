/*
 * Reads a blob from a file and prints what its model says: to runs before it is loaded, to a load whose n-th
 * fetch fails, to a damaged blob, then to a run and to steps whose n-th fetch fails.
 */
#include <stdio.h>
#include <string.h>

#include "net.h"

static uint8_t blob[NET_WEIGHTS_BYTES];
static int32_t left;

static union {
    uint64_t alignment;
    uint8_t bytes[NET_ARENA_BYTES];
} arena;

void net_fetch(void *to, uint32_t offset, uint32_t bytes)
{
    memcpy(to, blob + offset, bytes);
}

int32_t net_fetch_wait(void)
{
    return left-- == 0 ? -5 : 0;
}

static void say(int32_t status)
{
    printf("%d ", (int)status);
}

int main(int count, char **arguments)
{
    net_progress progress;
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    int32_t status = NET_AGAIN;

    if (file == NULL || fread(blob, 1, sizeof(blob), file) != sizeof(blob)) {
        return 1;
    }
    fclose(file);
    left = -1;
    say(net_run(arena.bytes));
    say(net_start(&progress, arena.bytes));
    say(net_load_weights(arena.bytes + 1));
    left = 2;
    say(net_load_weights(arena.bytes));
    left = -1;
    say(net_run(arena.bytes));
    blob[sizeof(blob) / 2] ^= 1;
    say(net_load_weights(arena.bytes));
    blob[sizeof(blob) / 2] ^= 1;
    say(net_load_weights(arena.bytes));
    say(net_run(arena.bytes));
    left = 1;
    say(net_run(arena.bytes));
    left = 1;
    say(net_start(&progress, arena.bytes));
    while (status == NET_AGAIN) {
        status = net_step(&progress, 0);
        say(status);
    }
    say(net_step(&progress, 0));
    left = -1;
    say(net_run(arena.bytes));
    printf("\n");
    return 0;
}
