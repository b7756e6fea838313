/* Hears the word in heard.wav. The file, and what is printed, go through the debugger's semihosting. */
#include <stdint.h>
#include <string.h>

#include "wake_audio.h"

enum { OPEN = 0x01, WRITE0 = 0x04, READ = 0x06, EXIT = 0x18, STOPPED = 0x20026 };
enum { HEADER_BYTES = 44, BLOCK = 320, THRESHOLD = 90, DEAF_RUNS = 8 };

extern uint32_t stack_top;
void start(void);

static wake_audio audio;
static union {
    uint64_t alignment;
    uint8_t bytes[WAKE_ARENA_BYTES];
} arena;

static intptr_t ask(intptr_t what, const void *with)
{
    register intptr_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;

    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static int32_t read_bytes(intptr_t file, void *to, int32_t bytes)
{
    const intptr_t block[] = {file, (intptr_t)to, bytes};

    return bytes - (int32_t)ask(READ, block);
}

static void print_time(int32_t milliseconds)
{
    char line[] = "heard after ......\n";

    for (int32_t i = 17; i >= 12; i--) {
        line[i] = (char)('0' + milliseconds % 10);
        milliseconds /= 10;
    }
    ask(WRITE0, line);
}

static void listen(void)
{
    static const char name[] = "heard.wav";
    const intptr_t names[] = {(intptr_t)name, 1, sizeof(name) - 1};
    const intptr_t file = ask(OPEN, names);
    static int16_t block[BLOCK];
    int32_t samples = 0;
    int32_t deaf = 0;

    read_bytes(file, block, HEADER_BYTES);
    wake_features_reset(&audio);
    for (;;) {
        const int16_t *pcm = block;
        int32_t count = read_bytes(file, block, sizeof(block)) / 2;

        if (count == 0) {
            return;
        }
        samples += count;
        while (wake_push_samples(&audio, arena.bytes, &pcm, &count) == WAKE_RAN) {
            deaf -= deaf > 0;
            if (deaf == 0 && wake_output_score(arena.bytes)[0] > THRESHOLD) {
                print_time(samples / (WAKE_AUDIO_RATE / 1000));
                deaf = DEAF_RUNS;
            }
        }
    }
}

void start(void)
{
    *(volatile uint32_t *)0xE000ED88 |= 0xF << 20; /* the floating-point unit */
    __asm__ volatile("dsb\nisb");
    listen();
    ask(EXIT, (const void *)STOPPED);
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {&stack_top, start};
