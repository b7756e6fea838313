/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a board's start-up against simulated registers and prints every write, in order.
 *
 * Standard input: `address mask`, a register that the chip has, and its bits. Any other access, and a write
 * that changes other bits, ends the program. Arguments: `address=value` is a register's first value;
 * `address:mask>address:mask` is a flag that the hardware sets while all bits of the first mask are set. All
 * numbers hexadecimal. */
#include "registers.h"

#include "thimble_board.h"
#include "thimble_cortex_m.h"
#include "thimble_firmware.h"

#include <stdio.h>
#include <stdlib.h>

#define REGISTERS 1024
#define RULES 16
#define STACK_LOW 0x20000000u
#define ENDLESS 100000

typedef struct {
    uint32_t address;
    uint32_t mask;
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
    fprintf(stderr, "the chip has no register at %08x\n", (unsigned)address);
    exit(3);
}

static void read_registers(void)
{
    unsigned address, mask;
    while (cell_count < REGISTERS && scanf("%x %x", &address, &mask) == 2) {
        cells[cell_count].address = address;
        cells[cell_count++].mask = mask;
    }
}

static void print_writes(void)
{
    for (int i = 0; i < cell_count; i++) {
        const uint32_t changed = cells[i].value ^ cells[i].seen;
        if ((changed & ~cells[i].mask) != 0) {
            fprintf(stderr, "reserved bits %08x of %08x are written\n", (unsigned)(changed & ~cells[i].mask),
                    (unsigned)cells[i].address);
            exit(5);
        }
        if (changed != 0) {
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

thimble_fault_record thimble_fault;

void thimble_fault_mark(uint32_t magic)
{
    thimble_fault.magic = magic;
}

static void print_start(void)
{
    const uint32_t *words = thimble_fault.words;
    printf("# start %x %x %x %x %x\n", (unsigned)thimble_fault.magic, (unsigned)words[0], (unsigned)words[1],
           (unsigned)words[2], (unsigned)words[3]);
}

void stopped(void)
{
    print_start();
    exit(6);
}

void paused(uint32_t milliseconds)
{
    print_writes();
    printf("# paused %u\n", (unsigned)milliseconds);
}

void thimble_uart_listen(void)
{
    thimble_interrupt_enable(THIMBLE_UART_IRQ);
}

void thimble_fault_forget(void)
{
    printf("# forget the fault record\n");
}

int main(int count, char **arguments)
{
    read_registers();
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
    thimble_core_settle();
#if !defined(__ARM_ARCH_8M_MAIN__) && !defined(__ARM_ARCH_8_1M_MAIN__) && !defined(THIMBLE_NO_MPU)
    thimble_mpu_guard(STACK_LOW - (1u << THIMBLE_GUARD_LOG2), THIMBLE_GUARD_LOG2);
#endif
    thimble_board_init();
#ifdef THIMBLE_EXTERNAL
    uint32_t identity = 0;
    const int32_t beside = thimble_external_init(&identity);
    print_writes();
    printf("# beside %d %x\n", (int)beside, (unsigned)identity);
    print_start();
#endif
    thimble_uart_init();
    thimble_counter_init();
    const int32_t taken = thimble_uart_take();
#ifdef THIMBLE_CACHES
    thimble_cache_clean();
#endif
    print_writes();
    printf("# clock %u\n", (unsigned)thimble_board_clock_hz());
    printf("# took %d\n", (int)taken);
    return 0;
}
