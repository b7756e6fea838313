/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a peer's program on an emulated MPS2 board: two inferences of bytes 7i, the marks that QEMU's
 * plugin looks for around each, and the outputs by semihosting. */
#include "peer.h"

#include <stddef.h>

#define SYS_WRITE0 0x04
#define SYS_EXIT 0x18
#define APPLICATION_EXIT 0x20026u
#define RUNS 2

extern uint32_t peer_stack_top[];
extern uint8_t peer_bss[], peer_bss_end[];
extern void __libc_init_array(void);

volatile uint32_t thimble_run_begins, thimble_run_ends;
void *__dso_handle; /* that the destructors of static objects are registered with */

static void semihost(uint32_t call, const void *argument)
{
    register uint32_t r0 __asm("r0") = call;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

static void end(void)
{
    semihost(SYS_EXIT, (const void *)APPLICATION_EXIT);
    for (;;) {
    }
}

void peer_fail(const char *why)
{
    semihost(SYS_WRITE0, "failed ");
    semihost(SYS_WRITE0, why);
    semihost(SYS_WRITE0, "\n");
    end();
}

static void put_number(const char *name, uint32_t value)
{
    char digits[12], *at = digits + sizeof digits - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + value % 10u);
        value /= 10u;
    } while (value != 0);
    semihost(SYS_WRITE0, name);
    semihost(SYS_WRITE0, at);
    semihost(SYS_WRITE0, "\n");
}

static void put_bytes(const uint8_t *bytes, uint32_t count)
{
    static const char hex[] = "0123456789abcdef";
    char text[] = "..";
    semihost(SYS_WRITE0, "output ");
    for (; count > 0; count--, bytes++) {
        text[0] = hex[*bytes >> 4];
        text[1] = hex[*bytes & 15u];
        semihost(SYS_WRITE0, text);
    }
    semihost(SYS_WRITE0, "\n");
}

void _init(void)
{
}

static void start(void)
{
    volatile uint32_t *const coprocessors = (volatile uint32_t *)0xE000ED88u;
    *coprocessors |= 0xFu << 20;
    __asm volatile("dsb\n isb" ::: "memory");
    for (uint8_t *at = peer_bss; at != peer_bss_end; at++) {
        *at = 0;
    }
    __libc_init_array();
    put_number("arena ", peer_prepare());
    for (uint32_t run = 0; run < RUNS; run++) {
        for (uint32_t i = 0; i < peer_inputs(); i++) {
            const peer_bytes input = peer_input(i);
            for (uint32_t at = 0; at < input.count; at++) {
                input.bytes[at] = (uint8_t)(7u * at);
            }
        }
        thimble_run_begins = 1;
        peer_run();
        thimble_run_ends = 1;
    }
    for (uint32_t i = 0; i < peer_outputs(); i++) {
        const peer_bytes output = peer_output(i);
        put_bytes(output.bytes, output.count);
    }
    end();
}

static void fault(void)
{
    peer_fail("fault");
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    peer_stack_top,      (const void *)start, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};
