/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a board's start-up against simulated registers and prints every write, in order.
 *
 * Arguments: `address=value` is a register's first value; `address:mask>address:mask` is a flag that
 * the hardware sets while all bits of the first mask are set. All numbers hexadecimal. */
#include "registers.h"

#include "thimble_board.h"

#include <stdio.h>
#include <stdlib.h>

#define REGISTERS 64
#define RULES 16
#define ENDLESS 100000

typedef struct {
    uint32_t address;
    uint32_t seen;
    volatile uint32_t value;
} cell;

typedef struct {
    unsigned address, mask, flag_address, flag;
} rule;

static cell cells[REGISTERS];
static int cell_count;
static rule rules[RULES];
static int rule_count;
static int accesses;

static cell *find(uint32_t address)
{
    for (int i = 0; i < cell_count; i++) {
        if (cells[i].address == address) {
            return &cells[i];
        }
    }
    if (cell_count == REGISTERS) {
        exit(3);
    }
    cells[cell_count].address = address;
    return &cells[cell_count++];
}

static void print_writes(void)
{
    for (int i = 0; i < cell_count; i++) {
        if (cells[i].value != cells[i].seen) {
            printf("%x %x\n", (unsigned)cells[i].address, (unsigned)cells[i].value);
            cells[i].seen = cells[i].value;
        }
    }
}

static void set_flags(void)
{
    for (int i = 0; i < rule_count; i++) {
        const rule *r = &rules[i];
        cell *flag = find(r->flag_address);
        const int on = (find(r->address)->value & r->mask) == r->mask;
        flag->value = on ? flag->value | r->flag : flag->value & ~r->flag;
        flag->seen = flag->value;
    }
}

volatile uint32_t *simulated(uint32_t address)
{
    if (++accesses == ENDLESS) {
        fprintf(stderr, "waits for ever for a flag of %x\n", (unsigned)address);
        exit(4);
    }
    print_writes();
    set_flags();
    return &find(address)->value;
}

void thimble_uart_listen(void)
{
}

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        unsigned address, value;
        rule *r = &rules[rule_count];
        if (sscanf(arguments[i], "%x=%x", &address, &value) == 2) {
            find(address)->value = find(address)->seen = value;
        } else if (rule_count < RULES && sscanf(arguments[i], "%x:%x>%x:%x", &r->address, &r->mask,
                                                &r->flag_address, &r->flag) == 4) {
            rule_count++;
        } else {
            return 2;
        }
    }
    thimble_board_init();
    thimble_uart_init();
    print_writes();
    return 0;
}
