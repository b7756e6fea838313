/* A boot loader that leaves a core as no reset does, and starts what lies at APPLICATION: with SysTick
 * counting, an interrupt pending, the MPU on, priorities masked, and (FROM_HANDLER) from within an exception.
 */
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

void reset(void) __attribute__((noreturn));
static void start(void) __attribute__((noreturn));

static void start(void)
{
    __asm volatile("cpsid i");
    REGISTER(0xE000E014u) = 50000u; /* SysTick: load, then counting with its exception */
    REGISTER(0xE000E010u) = 7u;
    REGISTER(0xE000E100u) = 1u << 10; /* an interrupt, enabled and pending */
    REGISTER(0xE000E200u) = 1u << 10;
    REGISTER(0xE000ED98u) = 5u; /* MPU: what lies behind a stack of 2 KB may not be touched */
    REGISTER(0xE000ED9Cu) = 0x20000800u;
    REGISTER(0xE000EDA0u) = (10u << 1) | 1u;
    REGISTER(0xE000ED94u) = 5u;
    REGISTER(0xE000ED10u) = 6u; /* deep sleep, and sleep at the end of an exception */
    const volatile uint32_t *vectors = (const volatile uint32_t *)APPLICATION;
    __asm volatile("msr basepri, %2\n\tmsr msp, %0\n\tisb\n\tbx %1" ::"r"(vectors[0]), "r"(vectors[1]),
                   "r"(0x10));
    __builtin_unreachable();
}

static void stop(void)
{
    for (;;) {
    }
}

void reset(void)
{
#ifdef FROM_HANDLER
    __asm volatile("svc 0");
#endif
    start();
}

__attribute__((section(".vectors"), used)) const uint32_t vectors[16] = {
    [0] = 0x20020000u,       [1] = (uint32_t)&reset, [2] = (uint32_t)&stop,  [3] = (uint32_t)&stop,
    [11] = (uint32_t)&start, [14] = (uint32_t)&stop, [15] = (uint32_t)&stop,
};
