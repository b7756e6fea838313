/* net on a painted stack: the bytes that its run took come in place of its first output. */
#include "net.h"

#include <string.h>

#define PAINTED_WORDS 1024u
#define PAINT 0xA5C3F00Du

int32_t painted_run(uint8_t *arena);

int32_t painted_run(uint8_t *arena)
{
    volatile uint32_t *top;
    uint32_t left = 0;

    __asm volatile("mov %0, sp" : "=r"(top));
    for (uint32_t word = 1; word <= PAINTED_WORDS; word++) {
        *(top - word) = PAINT;
    }
    const int32_t status = net_run(arena);
    while (left < PAINTED_WORDS && *(top - PAINTED_WORDS + left) == PAINT) {
        left++;
    }
    const uint32_t used = (PAINTED_WORDS - left) * (uint32_t)sizeof used;
    (void)memcpy(arena + OUTPUT_OFFSET, &used, sizeof used);
    return status;
}
