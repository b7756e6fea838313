/* SPDX-License-Identifier: Apache-2.0 */
/* A march over RAM: whether each bit of each word keeps what is written, alone and beside others. */
#include "contact.h"

/* One element of a march: each word from the first on, or from the last on, holds a value and gets another.
 */
typedef struct {
    int32_t from_last;
    int32_t reads;
    int32_t writes;
    uint32_t held; /* all bits of the words that are read differ from the background by this */
    uint32_t next;
} march_element;

/* March C- (van de Goor, "Testing Semiconductor Memories", 1991, 4.2): stuck bits, bits that do not change,
 * words that have one place or several, words that change with another. */
static const march_element march_c[] = {
    {0, 0, 1, 0u, 0u},  {0, 1, 1, 0u, ~0u}, {0, 1, 1, ~0u, 0u},
    {1, 1, 1, 0u, ~0u}, {1, 1, 1, ~0u, 0u}, {0, 1, 0, 0u, 0u},
};
#define ELEMENTS (sizeof march_c / sizeof march_c[0])

/* The word at fault; `count` where there is none. */
static uint32_t march(const march_element *element,
                      volatile uint32_t *memory,
                      uint32_t count,
                      uint32_t background,
                      uint32_t *seen)
{
    const uint32_t held = element->held ^ background;
    const uint32_t next = element->next ^ background;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = element->from_last != 0 ? count - 1u - i : i;
        if (element->reads != 0) {
            *seen = memory[at];
            if (*seen != held) {
                return at;
            }
        }
        if (element->writes != 0) {
            memory[at] = next;
        }
    }
    return count;
}

/* Takes an address and bytes, multiples of four. Answers 1 where a word is at fault, then its address, what
 * it was to hold, what it held, and the element. The memory's content is lost. */
void contact_march(const uint32_t *words, uint32_t *answer)
{
    static const uint32_t backgrounds[2] = {0u, 0x55555555u}; /* in whose words neighbours differ */
    volatile uint32_t *memory = (volatile uint32_t *)(uintptr_t)words[0];
    const uint32_t count = words[1] / 4u;

    for (uint32_t i = 0; i < 2u * ELEMENTS; i++) {
        const march_element *element = &march_c[i % ELEMENTS];
        uint32_t seen = 0;
        contact_empty_caches();
        const uint32_t at = march(element, memory, count, backgrounds[i / ELEMENTS], &seen);
        if (at != count) {
            answer[0] = 1u;
            answer[1] = words[0] + 4u * at;
            answer[2] = element->held ^ backgrounds[i / ELEMENTS];
            answer[3] = seen;
            answer[4] = i;
            return;
        }
    }
    contact_empty_caches();
}
