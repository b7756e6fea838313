/* SPDX-License-Identifier: Apache-2.0 */
/* Reception: an interrupt takes one byte at a time, and only while the service loop waits for it, so
 * that nothing disturbs an inference. The sender waits for replies, so one byte's room is enough. */
#include "thimble_board.h"
#include "thimble_cortex_m.h"

#define ARRIVED 0x100u

static volatile uint32_t received;

/* Masks itself: the byte must be fetched before the next may come. A UART behind a slow bus may ask once more
 * for a byte that has been taken, and asks after an overrun though none is there. */
void thimble_uart_interrupt(void)
{
    __asm volatile("cpsid i" ::: "memory");
    const int32_t byte = thimble_uart_take();
    if (byte >= 0) {
        received = ARRIVED | (uint32_t)byte;
    }
}

void thimble_uart_listen(void)
{
    thimble_interrupt_enable(THIMBLE_UART_IRQ);
}

uint8_t thimble_uart_get(void)
{
    while (received == 0) {
#ifndef THIMBLE_NEVER_SLEEPS
        /* Asleep with interrupts masked, so that one between the test and the sleep ends it too. ISB: what
         * was fetched before the sleep is fetched anew, as ST's errata ask of a chip whose flash sleeps. */
        __asm volatile("dsb\n\twfi\n\tisb" ::: "memory");
#endif
        __asm volatile("cpsie i\n\tisb\n\tcpsid i" ::: "memory");
    }
    const uint8_t byte = (uint8_t)received;
    received = 0;
    return byte;
}
