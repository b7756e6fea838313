/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the contact firmware: each takes the words behind its number, and leaves those of its answer.
 */
#ifndef CONTACT_H
#define CONTACT_H

#include "thimble_counter.h"

#include <stdint.h>

/* Memory, not what a cache holds of it. Caches that belong to a chip's flash alone stay as they are. */
void contact_empty_caches(void);

/* Leaves a count in two words, the lower one first. */
void contact_put_ticks(uint32_t *answer, thimble_count ticks);

/* March C- over RAM (march.c). */
void contact_march(const uint32_t *words, uint32_t *answer);

/* Reads, and calls to code in no cache (accesses.c). */
void contact_read(const uint32_t *words, uint32_t *answer);
void contact_branch(const uint32_t *words, uint32_t *answer);

/* Pairs of instructions (pairs.c). */
void contact_pair(const uint32_t *words, uint32_t *answer);

#endif
