/* Start-up and files of a program in QEMU, by semihosting. */
#include "files.h"

#include <stddef.h>
#include <string.h>

extern uint32_t stack_top;

static intptr_t ask(intptr_t what, const intptr_t *block)
{
    register intptr_t r0 __asm__("r0") = what;
    register const intptr_t *r1 __asm__("r1") = block;

    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

int32_t file_open(const char *name, int32_t mode)
{
    const intptr_t block[] = {(intptr_t)name, mode, (intptr_t)strlen(name)};

    return ask(0x01, block);
}

int32_t file_read(int32_t file, void *to, int32_t bytes)
{
    const intptr_t block[] = {file, (intptr_t)to, bytes};

    return bytes - ask(0x06, block);
}

void file_write(int32_t file, const void *from, int32_t bytes)
{
    const intptr_t block[] = {file, (intptr_t)from, bytes};

    ask(0x05, block);
}

static void leave(int32_t code)
{
    const intptr_t block[] = {0x20026, code};

    ask(0x20, block);
}

__attribute__((noreturn)) static void begin(void)
{
    volatile uint32_t *const coprocessors = (volatile uint32_t *)0xE000ED88;

    *coprocessors |= 0xF << 20;
    __asm__ volatile("dsb\nisb" ::: "memory");
    leave(program());
    for (;;) {
    }
}

__attribute__((noreturn)) static void fault(void)
{
    leave(99);
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    &stack_top, begin, fault, fault, fault, fault, fault, fault,
};
