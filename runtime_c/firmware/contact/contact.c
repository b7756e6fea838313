/* SPDX-License-Identifier: Apache-2.0 */
/* The firmware of `thimble contact`: a model whose input is a command and whose output is its answer, words
 * of 32 bits (toolchain/contact/commands.py). The host names addresses and keeps away from the firmware's
 * own. */
#include "thimble_counter.h"
#include "thimble_frame.h"

#ifdef THIMBLE_CACHES
#include "thimble_cortex_m.h"
#endif

#include <string.h>

#define COMMAND_WORDS 8u
#define ANSWER_AT 64u
#define ANSWER_WORDS 16u

enum {
    COMMAND_WAIT = 1,
    COMMAND_MARCH = 2,
    COMMAND_SUM = 3,
    COMMAND_PEEK = 4,
    COMMAND_READ = 5,
    COMMAND_BRANCH = 6,
};
enum { UNKNOWN_COMMAND = -64 };

typedef struct {
    uint32_t words[COMMAND_WORDS]; /* the command's number, then what it takes */
} contact_command;

typedef struct {
    uint32_t words[ANSWER_WORDS];
} contact_answer;

int32_t contact_run(uint8_t *arena);

/* Memory, not what a cache holds of it. Caches that belong to a chip's flash alone stay as they are. */
static void empty_caches(void)
{
#ifdef THIMBLE_CACHES
    thimble_cache_empty();
#endif
}

/* Takes ticks (64 bits, the lower word first). Answers how many have passed. */
static void wait_ticks(const uint32_t *words, uint32_t *answer)
{
    const uint64_t wanted = words[0] | ((uint64_t)words[1] << 32);
    const thimble_count start = thimble_counter();
    uint64_t passed = 0;

    while (passed < wanted) {
        passed = (uint64_t)(thimble_count)(thimble_counter() - start);
    }
    answer[0] = (uint32_t)passed;
    answer[1] = (uint32_t)(passed >> 32);
}

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
static void march_all(const uint32_t *words, uint32_t *answer)
{
    static const uint32_t backgrounds[2] = {0u, 0x55555555u}; /* in whose words neighbours differ */
    volatile uint32_t *memory = (volatile uint32_t *)(uintptr_t)words[0];
    const uint32_t count = words[1] / 4u;

    for (uint32_t i = 0; i < 2u * ELEMENTS; i++) {
        const march_element *element = &march_c[i % ELEMENTS];
        uint32_t seen = 0;
        empty_caches();
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
    empty_caches();
}

/* Takes an address and bytes. Answers their CRC-32. */
static void sum(const uint32_t *words, uint32_t *answer)
{
    empty_caches();
    answer[0] = thimble_crc32(0, (const uint8_t *)(uintptr_t)words[0], words[1]);
}

/* Takes how many addresses follow, and them. Answers the words there. */
static void peek(const uint32_t *words, uint32_t *answer)
{
    for (uint32_t i = 0; i < words[0] && i < COMMAND_WORDS - 2u; i++) {
        answer[i] = *(const volatile uint32_t *)(uintptr_t)words[i + 1u];
    }
}

static void put_ticks(uint32_t *answer, thimble_count ticks)
{
    answer[0] = (uint32_t)ticks;
    answer[1] = (uint32_t)((uint64_t)ticks >> 32);
}

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
static void read_words(const uint32_t *words, uint32_t *answer)
{
    const uint8_t *base = (const uint8_t *)(uintptr_t)words[0];
    const uint32_t mask = words[1];
    const uint32_t step = words[2];
    const uint32_t count = words[3];
    const uint32_t none = words[4]; /* unknown to the compiler: each address waits for the word before */

    for (uint32_t reads = 0; reads < 2u; reads++) {
        uint32_t state = 1;
        uint32_t at = 0;
        empty_caches();
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
        put_ticks(&answer[2u - 2u * reads], thimble_counter() - start);
    }
}

#define LANDINGS 128u
#define LANDING_BYTES 64u

/* Functions that return at once, each in a line of its own. */
static void contact_landings(void) __attribute__((naked, aligned(64)));

static void contact_landings(void)
{
    __asm volatile(".rept 128\n\t"
                   ".balign 64\n\t"
                   "bx lr\n\t"
                   ".endr");
}

/* Takes whether the calls go to one line or each to another. Answers the ticks of LANDINGS calls from empty
 * caches. */
static void branch(const uint32_t *words, uint32_t *answer)
{
    const uint32_t step = words[0] != 0 ? LANDING_BYTES : 0u;
    uintptr_t at = (uintptr_t)contact_landings;

    empty_caches();
    const thimble_count start = thimble_counter();
    for (uint32_t i = 0; i < LANDINGS; i++) {
        __asm volatile("blx %0" : : "r"(at) : "lr");
        at += step;
    }
    put_ticks(answer, thimble_counter() - start);
}

int32_t contact_run(uint8_t *arena)
{
    contact_command command;
    contact_answer answer;
    int32_t status = 0;

    (void)memcpy(&command, arena, sizeof command);
    (void)memset(&answer, 0, sizeof answer);
    switch (command.words[0]) {
    case COMMAND_WAIT:
        wait_ticks(&command.words[1], answer.words);
        break;
    case COMMAND_MARCH:
        march_all(&command.words[1], answer.words);
        break;
    case COMMAND_SUM:
        sum(&command.words[1], answer.words);
        break;
    case COMMAND_PEEK:
        peek(&command.words[1], answer.words);
        break;
    case COMMAND_READ:
        read_words(&command.words[1], answer.words);
        break;
    case COMMAND_BRANCH:
        branch(&command.words[1], answer.words);
        break;
    default:
        status = UNKNOWN_COMMAND;
        break;
    }
    (void)memcpy(&arena[ANSWER_AT], &answer, sizeof answer);
    return status;
}
