/*
 * Prints what a model over two banks of memory says to each of them missing or misaligned, and to a sound
 * pair.
 */
#include <stddef.h>
#include <stdio.h>

#include "net.h"

int main(void)
{
    const net_banks *const sound = net_arena();
    uint8_t *const *const pointers = (uint8_t *const *)sound;
    net_banks banks = *sound;
    uint8_t **const changed = (uint8_t **)&banks;

    printf("%d ", (int)net_run(NULL));
    for (size_t i = 0; i < sizeof(banks) / sizeof(uint8_t *); i++) {
        changed[i] = NULL;
        printf("%d ", (int)net_run(&banks));
        changed[i] = pointers[i] + 1;
        printf("%d ", (int)net_run(&banks));
        changed[i] = pointers[i];
    }
    printf("%d\n", (int)net_run(sound));
    return 0;
}
