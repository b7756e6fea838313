/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two models linked together, one of them in two arenas, their runs interleaved and in two threads.
 * Prints the outputs, which must be those of undisturbed runs.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "alpha.h"
#include "beta.h"

#define RUNS 200

static uint32_t first_words[(ALPHA_ARENA_BYTES + 3) / 4];
static uint32_t second_words[(ALPHA_ARENA_BYTES + 3) / 4];

static void fill(int8_t *data, int32_t count, int32_t seed)
{
    for (int32_t i = 0; i < count; i++) {
        data[i] = (int8_t)((i * 7 + seed) % 256 - 128);
    }
}

static void print(const int8_t *data, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        printf("%d%c", data[i], i + 1 < count ? ' ' : '\n');
    }
}

static void *again_and_again(void *arena)
{
    int8_t expected[ALPHA_OUTPUT_Y_BYTES];
    int8_t input[ALPHA_INPUT_X_BYTES];

    fill(input, ALPHA_INPUT_X_ELEMENTS, arena == (void *)first_words ? 1 : 2);
    memcpy(expected, alpha_output_y(arena), sizeof(expected));
    for (int32_t i = 0; i < RUNS; i++) {
        memcpy(alpha_input_x(arena), input, sizeof(input));
        if (alpha_run(arena) != 0 || memcmp(expected, alpha_output_y(arena), sizeof(expected)) != 0) {
            return arena;
        }
    }
    return NULL;
}

int main(void)
{
    uint8_t *first = (uint8_t *)first_words;
    uint8_t *second = (uint8_t *)second_words;
    pthread_t threads[2];

    fill(alpha_input_x(first), ALPHA_INPUT_X_ELEMENTS, 1);
    fill(alpha_input_x(second), ALPHA_INPUT_X_ELEMENTS, 2);
    fill(beta_input_x(beta_arena()), BETA_INPUT_X_ELEMENTS, 3);
    if (alpha_run(first) != 0 || beta_run(beta_arena()) != 0 || alpha_run(second) != 0) {
        return 1;
    }
    print(alpha_output_y(first), ALPHA_OUTPUT_Y_ELEMENTS);
    print(alpha_output_y(second), ALPHA_OUTPUT_Y_ELEMENTS);
    print(beta_output_y(beta_arena()), BETA_OUTPUT_Y_ELEMENTS);
    printf("%s\n", beta_operator_name(0));

    for (int32_t i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, again_and_again, i == 0 ? first : second) != 0) {
            return 2;
        }
    }
    for (int32_t i = 0; i < 2; i++) {
        void *failed;

        if (pthread_join(threads[i], &failed) != 0 || failed != NULL) {
            return 3;
        }
    }
    return beta_operator_name(BETA_OPERATORS) == NULL ? 0 : 4;
}
