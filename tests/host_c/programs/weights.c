/*
 * Reads a blob from a file and prints what its model says: to runs without weights, to the blob, to the blob
 * at an odd address, cut off and with each of its bytes flipped in turn.
 */
#include <stdio.h>
#include <string.h>

#include "net.h"

static union {
    uint64_t alignment;
    uint8_t bytes[NET_WEIGHTS_BYTES + 8];
} blob;

static union {
    uint64_t alignment;
    uint8_t bytes[NET_ARENA_BYTES];
} arena;

static void say(int32_t status)
{
    printf("%d ", (int)status);
}

int main(int count, char **arguments)
{
    net_progress progress;
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    const uint32_t size = file == NULL ? 0 : (uint32_t)fread(blob.bytes, 1, NET_WEIGHTS_BYTES, file);

    if (file != NULL) {
        fclose(file);
    }
    say(net_run(arena.bytes));
    say(net_start(&progress, arena.bytes));
    say(net_set_weights(NULL, size));
    say(net_check_weights(blob.bytes, size));
    say(net_run(arena.bytes));
    say(net_check_weights(blob.bytes, size - 1));
    say(net_check_weights(blob.bytes, 8));
    memmove(blob.bytes + 4, blob.bytes, size);
    say(net_check_weights(blob.bytes + 4, size));
    memmove(blob.bytes, blob.bytes + 4, size);
    say(net_set_weights(blob.bytes, size));
    say(net_run(arena.bytes));
    printf("\n");
    for (uint32_t i = 0; i < size; i++) {
        blob.bytes[i] = (uint8_t)(blob.bytes[i] ^ (1u << (i % 8)));
        say(net_set_weights(blob.bytes, size));
        blob.bytes[i] = (uint8_t)(blob.bytes[i] ^ (1u << (i % 8)));
    }
    printf("\n");
    return 0;
}
