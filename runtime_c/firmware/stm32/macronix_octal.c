/* SPDX-License-Identifier: Apache-2.0 */
/* An octal NOR flash of Macronix (MX25LM51245G, MX25UW25645G, MX25UM51245G) at OCTOSPI2 of an STM32U5 or
 * XSPI2 of an STM32H7RS or STM32N6: read like other memory, by eight lines, once a clock, at the controller's
 * clock over THIMBLE_EXTERNAL_DIVIDER, 66 MHz at most. Commands as in the flash's data sheet and in ST's
 * drivers (mx25lm51245g.c, mx25uw25645g.c). */
#include "registers_octospi.h"
#include "thimble_board.h"
#include "thimble_firmware.h"
#include "thimble_stm32.h"

#ifdef THIMBLE_XSPI
#define AT(name) XSPI2_##name
#define BITS(name) XSPI_##name
#else
#define AT(name) OCTOSPI2_##name
#define BITS(name) OCTOSPI_##name
#endif

/* With one line; with eight, the second byte is the first's complement. */
#define RESET_ENABLE 0x66u
#define RESET_MEMORY 0x99u
#define READ_IDENTITY 0x9Fu
#define READ_STATUS 0x05u
#define WRITE_ENABLE 0x06u
#define WRITE_CONFIGURATION_2 0x72u
#define OCTAL_RESET_ENABLE 0x6699u
#define OCTAL_RESET_MEMORY 0x9966u
#define OCTAL_READ_STATUS 0x05FAu
#define OCTAL_READ 0xEC13u

#define STATUS_WRITING (1u << 0)
#define STATUS_WRITE_ENABLED (1u << 1)

/* Configuration register 2: at 0 how many lines, at 0x300 how many dummy cycles; six do to 66 MHz. */
#define LINES_AT 0u
#define EIGHT_LINES_ONCE_A_CLOCK 1u
#define DUMMY_AT 0x300u
#define DUMMY_IS_SIX 7u
#define DUMMY_CYCLES 6u
#define STATUS_DUMMY_CYCLES 4u

#define OF_MACRONIX 0xC2u /* the first byte of the JEDEC identity */

#define WRITE 0u
#define READ (1u << BITS(CR_FMODE_Pos))
#define POLL (2u << BITS(CR_FMODE_Pos))
#define MAP (3u << BITS(CR_FMODE_Pos))

/* Modes of each phase: one line is 1, eight are 4. */
#define INSTRUCTION_1 (1u << BITS(CCR_IMODE_Pos))
#define INSTRUCTION_8 ((4u << BITS(CCR_IMODE_Pos)) | BITS(CCR_ISIZE_0))
#define ADDRESS_1 ((1u << BITS(CCR_ADMODE_Pos)) | BITS(CCR_ADSIZE))
#define ADDRESS_8 ((4u << BITS(CCR_ADMODE_Pos)) | BITS(CCR_ADSIZE))
#define DATA_1 (1u << BITS(CCR_DMODE_Pos))
#define DATA_8 (4u << BITS(CCR_DMODE_Pos))

#define SELECT_HIGH_CYCLES 2u
#define POLLING_CLOCKS 16u
#define RESET_MILLISECONDS 100u

#ifdef THIMBLE_XSPI
#if THIMBLE_XSPI == 2
/* The pins of port 2 have a supply of their own, of 1.8 V on ST's boards. */
static void supply_up(void)
{
    THIMBLE_REGISTER(PWR_SVMCR3) |= PWR_SVMCR3_VDDIO3SV | PWR_SVMCR3_VDDIO3VRSEL;
    THIMBLE_REGISTER(RCC_CCIPR6) &= ~RCC_CCIPR6_XSPI2SEL;
}

/* By Armv8-M's own map, what lies there is cached. */
static void cache_up(void)
{
}
#else
/* The pins of port 2 have a supply of their own. */
static void supply_up(void)
{
    THIMBLE_REGISTER(PWR_CSR2) |= PWR_CSR2_EN_XSPIM2;
    THIMBLE_REGISTER(RCC_CCIPR1) &= ~RCC_CCIPR1_XSPI2SEL;
}

static void cache_up(void)
{
    thimble_mpu_allow_constants(THIMBLE_EXTERNAL_ORIGIN, THIMBLE_EXTERNAL_SIZE_LOG2);
}
#endif

/* Kernel clock: that of AHB5. */
static void clocks_up(void)
{
    supply_up();
    thimble_clock_enable(RCC_AHB5ENR, RCC_AHB5ENR_XSPI2EN | RCC_AHB5ENR_XSPIMEN);
    THIMBLE_REGISTER(RCC_AHB5RSTR) |= RCC_AHB5RSTR_XSPI2RST | RCC_AHB5RSTR_XSPIMRST;
    THIMBLE_REGISTER(RCC_AHB5RSTR) &= ~(RCC_AHB5RSTR_XSPI2RST | RCC_AHB5RSTR_XSPIMRST);
}

#define SAMPLING 0u
#else
/* Kernel clock: that of the core. */
static void clocks_up(void)
{
    THIMBLE_REGISTER(RCC_CCIPR2) &= ~RCC_CCIPR2_OCTOSPISEL;
    thimble_clock_enable(RCC_AHB2ENR1, RCC_AHB2ENR1_OCTOSPIMEN);
    thimble_clock_enable(RCC_AHB2ENR2, RCC_AHB2ENR2_OCTOSPI2EN);
    THIMBLE_REGISTER(RCC_AHB2RSTR1) |= RCC_AHB2RSTR1_OCTOSPIMRST;
    THIMBLE_REGISTER(RCC_AHB2RSTR2) |= RCC_AHB2RSTR2_OCTOSPI2RST;
    THIMBLE_REGISTER(RCC_AHB2RSTR1) &= ~RCC_AHB2RSTR1_OCTOSPIMRST;
    THIMBLE_REGISTER(RCC_AHB2RSTR2) &= ~RCC_AHB2RSTR2_OCTOSPI2RST;
}

#define SAMPLING OCTOSPI_DCR1_DLYBYP /* no delay of the clock, which double data rate needs */

/* The data cache before external memory empties itself after a reset; it reads whole lines in order. */
static void cache_up(void)
{
    thimble_clock_enable(RCC_AHB1ENR, RCC_AHB1ENR_DCACHE1EN);
    thimble_wait_clear(DCACHE1_SR, DCACHE_SR_BUSYF);
    THIMBLE_REGISTER(DCACHE1_CR) = DCACHE_CR_HBURST | DCACHE_CR_EN;
}
#endif

static int32_t finish(uint32_t flag, uint32_t clear)
{
    if (thimble_answers(AT(SR), flag, flag) == 0) {
        return 0;
    }
    THIMBLE_REGISTER(AT(FCR)) = clear;
    return thimble_answers(AT(SR), BITS(SR_BUSY), 0);
}

/* Sets the controller's next function, and the phases of the command. */
static void begin(uint32_t function, uint32_t phases, uint32_t dummy_cycles)
{
    THIMBLE_REGISTER(AT(CR)) = function | BITS(CR_APMS) | BITS(CR_EN);
    THIMBLE_REGISTER(AT(CCR)) = phases;
    THIMBLE_REGISTER(AT(TCR)) = dummy_cycles;
}

static int32_t command(uint32_t code, uint32_t phases)
{
    begin(WRITE, phases, 0);
    THIMBLE_REGISTER(AT(IR)) = code;
    return finish(BITS(SR_TCF), BITS(FCR_CTCF));
}

/* Until the bits of `mask` in the flash's status are `value`: the controller reads it again and again. */
static int32_t poll(uint32_t code, uint32_t phases, uint32_t dummy_cycles, uint32_t mask, uint32_t value)
{
    THIMBLE_REGISTER(AT(PSMKR)) = mask;
    THIMBLE_REGISTER(AT(PSMAR)) = value;
    THIMBLE_REGISTER(AT(PIR)) = POLLING_CLOCKS;
    THIMBLE_REGISTER(AT(DLR)) = 0; /* one byte */
    begin(POLL, phases, dummy_cycles);
    THIMBLE_REGISTER(AT(IR)) = code;
    if (dummy_cycles != 0) {
        THIMBLE_REGISTER(AT(AR)) = 0;
    }
    return finish(BITS(SR_SMF), BITS(FCR_CSMF));
}

static int32_t wait_for_status(uint32_t mask, uint32_t value)
{
    return poll(READ_STATUS, INSTRUCTION_1 | DATA_1, 0, mask, value);
}

static int32_t read_identity(uint32_t *identity)
{
    THIMBLE_REGISTER(AT(DLR)) = 3u; /* a word, of which three bytes are the identity */
    begin(READ, INSTRUCTION_1 | DATA_1, 0);
    THIMBLE_REGISTER(AT(IR)) = READ_IDENTITY;
    if (finish(BITS(SR_TCF), BITS(FCR_CTCF)) == 0) {
        return 0;
    }
    *identity = THIMBLE_REGISTER(AT(DR)) & 0xFFFFFFu;
    return 1;
}

static int32_t write_configuration(uint32_t address, uint32_t value)
{
    if (command(WRITE_ENABLE, INSTRUCTION_1) == 0 ||
        wait_for_status(STATUS_WRITE_ENABLED, STATUS_WRITE_ENABLED) == 0) {
        return 0;
    }
    THIMBLE_REGISTER(AT(DLR)) = 0;
    begin(WRITE, INSTRUCTION_1 | ADDRESS_1 | DATA_1, 0);
    THIMBLE_REGISTER(AT(IR)) = WRITE_CONFIGURATION_2;
    THIMBLE_REGISTER(AT(AR)) = address;
    THIMBLE_REGISTER_BYTE(AT(DR)) = (uint8_t)value;
    return finish(BITS(SR_TCF), BITS(FCR_CTCF));
}

static int32_t controller_up(void)
{
    clocks_up();
    thimble_stm32_external_pins();
    THIMBLE_REGISTER(AT(DCR1)) = SAMPLING | ((THIMBLE_EXTERNAL_SIZE_LOG2 - 1u) << BITS(DCR1_DEVSIZE_Pos)) |
                                 ((SELECT_HIGH_CYCLES - 1u) << BITS(DCR1_CSHT_Pos));
    THIMBLE_REGISTER(AT(DCR2)) = THIMBLE_EXTERNAL_DIVIDER - 1u;
    return thimble_answers(AT(SR), BITS(SR_BUSY), 0); /* an XSPI calibrates itself */
}

#ifndef THIMBLE_PAUSE
#define THIMBLE_PAUSE(milliseconds) pause(milliseconds)

/* At least `milliseconds` at the core's highest clock: a turn of the loop takes three cycles or more. */
static void pause(uint32_t milliseconds)
{
    for (volatile uint32_t turn = THIMBLE_CLOCK_HZ / 3000u * milliseconds; turn != 0; turn--) {
    }
}
#endif

/* Whatever it was used to by who ran before: one line, or eight, once or twice a clock. A flash that was
 * erasing takes 100 ms to be ready, and its status is not to be believed until then: ST's driver waits as
 * long (b_u585i_iot02a_ospi.c:1634 of b-u585i-iot02a-bsp). */
static int32_t reset_memory(void)
{
    const int32_t done =
        command(RESET_ENABLE, INSTRUCTION_1) != 0 && command(RESET_MEMORY, INSTRUCTION_1) != 0 &&
        command(OCTAL_RESET_ENABLE, INSTRUCTION_8) != 0 && command(OCTAL_RESET_MEMORY, INSTRUCTION_8) != 0 &&
        command(OCTAL_RESET_ENABLE, INSTRUCTION_8 | BITS(CCR_IDTR)) != 0 &&
        command(OCTAL_RESET_MEMORY, INSTRUCTION_8 | BITS(CCR_IDTR)) != 0;
    THIMBLE_PAUSE(RESET_MILLISECONDS);
    return done != 0 && wait_for_status(STATUS_WRITING, 0) != 0;
}

int32_t thimble_external_init(uint32_t *identity)
{
    if (controller_up() == 0 || reset_memory() == 0 || read_identity(identity) == 0) {
        return THIMBLE_BESIDE_SILENT;
    }
    if ((*identity & 0xFFu) != OF_MACRONIX) {
        return THIMBLE_BESIDE_UNKNOWN;
    }
    if (write_configuration(DUMMY_AT, DUMMY_IS_SIX) == 0 ||
        write_configuration(LINES_AT, EIGHT_LINES_ONCE_A_CLOCK) == 0 ||
        poll(OCTAL_READ_STATUS, INSTRUCTION_8 | ADDRESS_8 | DATA_8, STATUS_DUMMY_CYCLES, STATUS_WRITING, 0) ==
            0) {
        return THIMBLE_BESIDE_SILENT;
    }
    begin(WRITE, INSTRUCTION_8 | ADDRESS_8 | DATA_8, DUMMY_CYCLES); /* an address would start it */
    THIMBLE_REGISTER(AT(IR)) = OCTAL_READ;
    THIMBLE_REGISTER(AT(CR)) = MAP | BITS(CR_EN);
    cache_up();
    return 0;
}
