/* SPDX-License-Identifier: Apache-2.0 */
/* How long reads take, and calls to code of which no cache holds a line. */
#include "contact.h"

/* The next offset: `step` bytes on, or any word where that is 1 (Numerical Recipes' generator, 7.1). */
static uint32_t next_offset(uint32_t at, uint32_t step, uint32_t *state)
{
    if (step != 1u) {
        return at + step;
    }
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) & ~3u;
}

/* Takes an address, a mask of offsets, a step, how many words, and 0. Answers the ticks of reading them from
 * empty caches, and of as many turns without a read. */
void contact_read(const uint32_t *words, uint32_t *answer)
{
    const uint8_t *base = (const uint8_t *)(uintptr_t)words[0];
    const uint32_t mask = words[1];
    const uint32_t step = words[2];
    const uint32_t count = words[3];
    const uint32_t none = words[4]; /* unknown to the compiler: each address waits for the word before */

    for (uint32_t reads = 0; reads < 2u; reads++) {
        uint32_t state = 1;
        uint32_t at = 0;
        contact_empty_caches();
        const thimble_count start = thimble_counter();
        if (reads != 0) {
            for (uint32_t i = 0; i < count; i++) {
                const uint32_t word = *(const volatile uint32_t *)(const void *)&base[at & mask];
                at = next_offset(at, step, &state) + (word & none);
            }
        } else {
            for (uint32_t i = 0; i < count; i++) {
                uint32_t word = at & mask;
                __asm volatile("" : "+r"(word));
                at = next_offset(at, step, &state) + (word & none);
            }
        }
        contact_put_ticks(&answer[2u - 2u * reads], thimble_counter() - start);
    }
}

#define LANDINGS 128u
#define LANDING_BYTES 64u

/* Functions that return at once, each in a line of its own. */
static void landings(void) __attribute__((naked, aligned(64)));

static void landings(void)
{
    __asm volatile(".rept 128\n\t"
                   ".balign 64\n\t"
                   "bx lr\n\t"
                   ".endr");
}

/* Takes whether the calls go to one line or each to another. Answers the ticks of LANDINGS calls from empty
 * caches. */
void contact_branch(const uint32_t *words, uint32_t *answer)
{
    const uint32_t step = words[0] != 0 ? LANDING_BYTES : 0u;
    uintptr_t at = (uintptr_t)landings;

    contact_empty_caches();
    const thimble_count start = thimble_counter();
    for (uint32_t i = 0; i < LANDINGS; i++) {
        __asm volatile("blx %0" : : "r"(at) : "lr");
        at += step;
    }
    contact_put_ticks(answer, thimble_counter() - start);
}
