/*
 * Prints what a model says whose input of ten rows comes by rows, in order and out of order, and whether its
 * output is that of the frame pushed at once.
 */
#include <stdio.h>
#include <string.h>

#include "net.h"

enum { ROWS = NET_INPUT_IN0_ROWS, ROW = NET_INPUT_IN0_ROW_ELEMENTS };

static void say(int32_t status)
{
    printf("%s ", status == NET_OK            ? "OK"
                  : status == NET_AGAIN       ? "AGAIN"
                  : status == NET_ERROR_ARENA ? "ARENA"
                  : status == NET_ERROR_ROWS  ? "ROWS"
                                              : "other");
}

int main(void)
{
    static union {
        uint64_t alignment;
        uint8_t bytes[NET_ARENA_BYTES + 8];
    } memory;
    static int8_t rows[ROWS * ROW];
    static int8_t wanted[NET_OUTPUT_T1_BYTES];
    uint8_t *const arena = memory.bytes;

    for (int32_t i = 0; i < ROWS * ROW; i++) {
        rows[i] = (int8_t)(i * 37 % 251 - 120);
    }
    memset(arena, 0xA5, sizeof(memory));
    say(net_push_begin(NULL));
    printf("%u ", (unsigned)net_rows_left(NULL));
    say(net_push_rows(arena + 1, rows, 1));
    say(net_push_rows(arena, rows, 1)); /* no frame was begun */

    say(net_push_begin(arena));
    say(net_push_rows(arena, rows, ROWS + 1));
    say(net_push_rows(arena, rows, ROWS));
    memcpy(wanted, net_output_t1(arena), sizeof(wanted));
    say(net_push_rows(arena, rows, 1)); /* the frame is done */

    say(net_push_begin(arena));
    say(net_push_rows(arena, rows, 4));
    say(net_push_begin(arena)); /* another frame instead */
    say(net_push_rows(arena, rows, 0));
    printf("%u ", (unsigned)net_rows_left(arena));
    say(net_push_rows(arena, rows, 3));
    say(net_push_rows(arena, &rows[3 * ROW], 6));
    say(net_push_rows(arena, &rows[9 * ROW], 2));
    printf("%u ", (unsigned)net_rows_left(arena));
    say(net_push_rows(arena, &rows[9 * ROW], 1));
    printf("%u %s\n", (unsigned)net_rows_left(arena),
           memcmp(wanted, net_output_t1(arena), sizeof(wanted)) ? "other" : "same");
    return 0;
}
