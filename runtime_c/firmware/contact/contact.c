/* SPDX-License-Identifier: Apache-2.0 */
/* The firmware of `thimble contact`: a model whose input is a command and whose output is its answer, words
 * of 32 bits (toolchain/contact/commands.py). The host names addresses and keeps away from the firmware's
 * own. */
#include "contact.h"
#include "thimble_frame.h"

#include "thimble_cortex_m.h"
#ifdef THIMBLE_CACHES
#include "registers_caches.h"
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
    COMMAND_PAIR = 7,
    COMMAND_SWITCH = 8,
};
enum { UNKNOWN_COMMAND = -64 };

typedef struct {
    uint32_t words[COMMAND_WORDS]; /* the command's number, then what it takes */
} contact_command;

typedef struct {
    uint32_t words[ANSWER_WORDS];
} contact_answer;

int32_t contact_run(uint8_t *arena);

void contact_empty_caches(void)
{
#ifdef THIMBLE_CACHES
    thimble_cache_empty();
#endif
}

void contact_put_ticks(uint32_t *answer, thimble_count ticks)
{
    answer[0] = (uint32_t)ticks;
    answer[1] = (uint32_t)((uint64_t)ticks >> 32);
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
    contact_put_ticks(answer, (thimble_count)passed);
}

/* Takes an address and bytes. Answers their CRC-32. */
static void sum(const uint32_t *words, uint32_t *answer)
{
    contact_empty_caches();
    answer[0] = thimble_crc32(0, (const uint8_t *)(uintptr_t)words[0], words[1]);
}

/* Takes how many addresses follow, and them. Answers the words there. */
static void peek(const uint32_t *words, uint32_t *answer)
{
    for (uint32_t i = 0; i < words[0] && i < COMMAND_WORDS - 2u; i++) {
        answer[i] = *(const volatile uint32_t *)(uintptr_t)words[i + 1u];
    }
}

#define SWITCH_READS 100000u

/* Takes a register, bits of it, and whether to set them; prefetch or a cache. Answers the register before and
 * after. No handler runs while a cache of data is emptied and turned off: it would leave in it what it
 * stores. */
static void switch_bits(const uint32_t *words, uint32_t *answer)
{
    volatile uint32_t *place = (volatile uint32_t *)(uintptr_t)words[0];
    const uint32_t bits = words[1];
    const uint32_t wanted = words[2] != 0 ? bits : 0u;

    answer[0] = *place;
    const uint32_t next = (answer[0] & ~bits) | wanted;
    __asm volatile("cpsid i" : : : "memory");
    contact_empty_caches();
#ifdef THIMBLE_CACHES
    if (words[0] == SCB_CCR && (wanted & SCB_CCR_DC_Msk) != 0) {
        thimble_caches_enable(); /* lines that it holds are older than the memory */
    }
#endif
    *place = next;
    thimble_barrier();
    for (uint32_t i = 0; i < SWITCH_READS && (*place & bits) != wanted; i++) {
    }
    __asm volatile("cpsie i" : : : "memory");
    contact_empty_caches();
    answer[1] = *place;
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
        contact_march(&command.words[1], answer.words);
        break;
    case COMMAND_SUM:
        sum(&command.words[1], answer.words);
        break;
    case COMMAND_PEEK:
        peek(&command.words[1], answer.words);
        break;
    case COMMAND_READ:
        contact_read(&command.words[1], answer.words);
        break;
    case COMMAND_BRANCH:
        contact_branch(&command.words[1], answer.words);
        break;
    case COMMAND_PAIR:
        contact_pair(&command.words[1], answer.words);
        break;
    case COMMAND_SWITCH:
        switch_bits(&command.words[1], answer.words);
        break;
    default:
        status = UNKNOWN_COMMAND;
        break;
    }
    (void)memcpy(&arena[ANSWER_AT], &answer, sizeof answer);
    return status;
}
