/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a model that was compiled with -fsanitize=thread and records, in place of that sanitizer's
 * library, when each byte of the arena is first written and last read by the operators. Its argument is the
 * arena's size in bytes, so that one object serves all models.
 *
 * Prints two uint32 for every byte: the times of its first write and of its last read; 0 for never. Then one
 * for each call of an operator: the time when it began.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_hooks.h"

#define CALLS 65536

static uint8_t *arena;
static size_t arena_bytes;
static uint32_t now;
static uint32_t begun[CALLS];
static size_t calls;
static uint32_t *first_write;
static uint32_t *last_read;

static void record_read(const void *at, size_t bytes)
{
    const uintptr_t place = (uintptr_t)at - (uintptr_t)arena;

    now++;
    for (size_t i = 0; i < bytes && place < arena_bytes; i++) {
        last_read[place + i] = now;
    }
}

static void record_write(const void *at, size_t bytes)
{
    const uintptr_t place = (uintptr_t)at - (uintptr_t)arena;

    now++;
    for (size_t i = 0; i < bytes && place < arena_bytes; i++) {
        if (first_write[place + i] == 0) {
            first_write[place + i] = now;
        }
    }
}

void trace_begin(int32_t index)
{
    (void)index;
    if (calls == CALLS) {
        exit(5);
    }
    begun[calls++] = ++now;
}

#define ACCESSES(bytes)                                                                                      \
    void __tsan_read##bytes(void *at);                                                                       \
    void __tsan_write##bytes(void *at);                                                                      \
    void __tsan_unaligned_read##bytes(void *at);                                                             \
    void __tsan_unaligned_write##bytes(void *at);                                                            \
    void __tsan_read##bytes(void *at)                                                                        \
    {                                                                                                        \
        record_read(at, bytes);                                                                              \
    }                                                                                                        \
    void __tsan_write##bytes(void *at)                                                                       \
    {                                                                                                        \
        record_write(at, bytes);                                                                             \
    }                                                                                                        \
    void __tsan_unaligned_read##bytes(void *at)                                                              \
    {                                                                                                        \
        record_read(at, bytes);                                                                              \
    }                                                                                                        \
    void __tsan_unaligned_write##bytes(void *at)                                                             \
    {                                                                                                        \
        record_write(at, bytes);                                                                             \
    }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_init(void);
void __tsan_func_entry(void *from);
void __tsan_func_exit(void);
void __tsan_read_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes);
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);
void *__real_memset(void *to, int value, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memset(void *to, int value, size_t bytes);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *from)
{
    (void)from;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *at, size_t bytes)
{
    record_read(at, bytes);
}

void __tsan_write_range(void *at, size_t bytes)
{
    record_write(at, bytes);
}

/* It may copy in any order: whatever it reads it may read after it has written. */
void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    record_write(to, bytes);
    record_read(from, bytes);
    return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    record_read(from, bytes);
    record_write(to, bytes);
    return __real_memmove(to, from, bytes);
}

void *__wrap_memset(void *to, int value, size_t bytes)
{
    record_write(to, bytes);
    return __real_memset(to, value, bytes);
}

int main(int count, char **words)
{
    if (count != 2) {
        return 1;
    }
    arena_bytes = strtoul(words[1], NULL, 10);
    arena = malloc(arena_bytes);
    first_write = calloc(arena_bytes, sizeof(*first_write));
    last_read = calloc(arena_bytes, sizeof(*last_read));
    if (arena == NULL || first_write == NULL || last_read == NULL) {
        return 2;
    }
    for (size_t i = 0; i < arena_bytes; i++) {
        arena[i] = (uint8_t)(i * 37U);
    }
    if (traced_run(arena) != 0) {
        return 3;
    }
    for (size_t i = 0; i < arena_bytes; i++) {
        const uint32_t times[2] = {first_write[i], last_read[i]};
        if (fwrite(times, sizeof(times), 1, stdout) != 1) {
            return 4;
        }
    }
    if (fwrite(begun, sizeof(begun[0]), calls, stdout) != calls) {
        return 4;
    }
    free(last_read);
    free(first_write);
    free(arena);
    return 0;
}
