/*
 * Prints what a model says to an arena that is missing, two that are misaligned, and a sound one; then
 * whether it left the misaligned ones alone.
 */
#include <stdio.h>
#include <string.h>

#include "net.h"

#define SPARE 8

int main(void)
{
    static union {
        uint64_t alignment;
        uint8_t bytes[NET_ARENA_BYTES + SPARE];
    } memory;
    uint8_t *const arena = memory.bytes;
    static const uint8_t untouched[sizeof(memory)];
    int32_t found[4];

    net_reset(NULL);
    net_reset(arena + 1);
    found[0] = net_run(NULL);
    found[1] = net_run(arena + 1);
    found[2] = net_run(arena + NET_ARENA_ALIGNMENT / 2);
    const int same = memcmp(arena, untouched, sizeof(memory)) == 0;
    net_reset(arena);
    found[3] = net_run(arena);
    for (int32_t i = 0; i < 4; i++) {
        printf("%s ", found[i] == NET_ERROR_ARENA ? "ARENA" : found[i] == NET_OK ? "OK" : "other");
    }
    printf("%s\n", same ? "untouched" : "touched");
    return 0;
}
