/*
 * Prints what the step functions say to misuse and in a run, and how many calls each kind of step makes. Two
 * runs are under way at once in arenas of their own.
 */
#include <stdio.h>
#include <string.h>

#include "net.h"

typedef union {
    uint64_t alignment;
    uint8_t bytes[NET_ARENA_BYTES + 8];
} memory;

static int32_t count_down(void *context)
{
    int32_t *const left = context;

    return --*left > 0;
}

static const char *text(int32_t status)
{
    switch (status) {
    case NET_OK:
        return "OK";
    case NET_AGAIN:
        return "AGAIN";
    case NET_ERROR_ARENA:
        return "ARENA";
    case NET_ERROR_NOT_STARTED:
        return "NOT_STARTED";
    case NET_ERROR_DONE:
        return "DONE";
    default:
        return "other";
    }
}

int main(void)
{
    static memory one, two;
    net_progress progress = {0}, other;
    int32_t left = 2;
    int32_t steps = 0;

    printf("%s ", text(net_step(&progress, 1)));
    printf("%s ", text(net_step(NULL, 1)));
    printf("%s ", text(net_start(NULL, one.bytes)));
    printf("%s ", text(net_start(&progress, NULL)));
    printf("%s ", text(net_step(&progress, 1)));
    printf("%s ", text(net_start(&progress, one.bytes + 1)));
    printf("%s\n", text(net_step_while(&progress, count_down, &left)));

    memset(net_input_x(one.bytes), 7, NET_INPUT_X_BYTES);
    memset(net_input_x(two.bytes), 7, NET_INPUT_X_BYTES);
    printf("%s ", text(net_start(&progress, one.bytes)));
    printf("%s ", text(net_start(&other, two.bytes)));
    printf("%s ", text(net_step(&progress, 0)));
    printf("%d ", (int)progress.next - 1);
    printf("%s ", text(net_step_while(&progress, count_down, &left)));
    printf("%d ", (int)progress.next - 1);
    while (net_step_while(&other, NULL, NULL) == NET_AGAIN) {
        steps++;
    }
    printf("%d ", (int)steps + 1 == NET_STEPS);
    printf("%s ", text(net_step(&progress, UINT32_MAX)));
    printf("%s ", text(net_step(&progress, UINT32_MAX)));
    printf("%s\n", text(net_step_while(&other, count_down, &left)));
    printf("%d\n", memcmp(net_output_y(one.bytes), net_output_y(two.bytes), NET_OUTPUT_Y_BYTES));
    return 0;
}
