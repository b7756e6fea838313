/* SPDX-License-Identifier: Apache-2.0 */
/* An octal NOR flash of Macronix (MX25LM51245G, MX25UW25645G, MX25UM51245G) at OCTOSPI2 of an STM32U5 or
 * XSPI2 of an STM32H7RS or STM32N6: read like other memory, by eight lines, once a clock, at the controller's
 * clock over THIMBLE_EXTERNAL_DIVIDER, 66 MHz at most. Commands as in the flash's data sheet and in ST's
 * drivers (mx25lm51245g.c, mx25uw25645g.c). */
#include "registers_octospi.h"
#include "thimble_board.h"
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

#define WRITE 0u
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

static void finish(uint32_t flag, uint32_t clear)
{
    thimble_wait_set(AT(SR), flag);
    THIMBLE_REGISTER(AT(FCR)) = clear;
    thimble_wait_clear(AT(SR), BITS(SR_BUSY));
}

/* Sets the controller's next function, and the phases of the command. */
static void begin(uint32_t function, uint32_t phases, uint32_t dummy_cycles)
{
    THIMBLE_REGISTER(AT(CR)) = function | BITS(CR_APMS) | BITS(CR_EN);
    THIMBLE_REGISTER(AT(CCR)) = phases;
    THIMBLE_REGISTER(AT(TCR)) = dummy_cycles;
}

static void command(uint32_t code, uint32_t phases)
{
    begin(WRITE, phases, 0);
    THIMBLE_REGISTER(AT(IR)) = code;
    finish(BITS(SR_TCF), BITS(FCR_CTCF));
}

/* Until the bits of `mask` in the flash's status are `value`: the controller reads it again and again. */
static void poll(uint32_t code, uint32_t phases, uint32_t dummy_cycles, uint32_t mask, uint32_t value)
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
    finish(BITS(SR_SMF), BITS(FCR_CSMF));
}

static void wait_for_status(uint32_t mask, uint32_t value)
{
    poll(READ_STATUS, INSTRUCTION_1 | DATA_1, 0, mask, value);
}

static void write_configuration(uint32_t address, uint32_t value)
{
    command(WRITE_ENABLE, INSTRUCTION_1);
    wait_for_status(STATUS_WRITE_ENABLED, STATUS_WRITE_ENABLED);
    THIMBLE_REGISTER(AT(DLR)) = 0;
    begin(WRITE, INSTRUCTION_1 | ADDRESS_1 | DATA_1, 0);
    THIMBLE_REGISTER(AT(IR)) = WRITE_CONFIGURATION_2;
    THIMBLE_REGISTER(AT(AR)) = address;
    THIMBLE_REGISTER_BYTE(AT(DR)) = (uint8_t)value;
    finish(BITS(SR_TCF), BITS(FCR_CTCF));
}

static void controller_up(void)
{
    clocks_up();
    thimble_stm32_external_pins();
    THIMBLE_REGISTER(AT(DCR1)) = SAMPLING | ((THIMBLE_EXTERNAL_SIZE_LOG2 - 1u) << BITS(DCR1_DEVSIZE_Pos)) |
                                 ((SELECT_HIGH_CYCLES - 1u) << BITS(DCR1_CSHT_Pos));
    THIMBLE_REGISTER(AT(DCR2)) = THIMBLE_EXTERNAL_DIVIDER - 1u;
    thimble_wait_clear(AT(SR), BITS(SR_BUSY)); /* an XSPI calibrates itself */
}

/* Whatever it was used to by who ran before: one line, or eight, once or twice a clock. */
static void reset_memory(void)
{
    command(RESET_ENABLE, INSTRUCTION_1);
    command(RESET_MEMORY, INSTRUCTION_1);
    command(OCTAL_RESET_ENABLE, INSTRUCTION_8);
    command(OCTAL_RESET_MEMORY, INSTRUCTION_8);
    command(OCTAL_RESET_ENABLE, INSTRUCTION_8 | BITS(CCR_IDTR));
    command(OCTAL_RESET_MEMORY, INSTRUCTION_8 | BITS(CCR_IDTR));
    wait_for_status(STATUS_WRITING, 0);
}

void thimble_external_init(void)
{
    controller_up();
    reset_memory();
    write_configuration(DUMMY_AT, DUMMY_IS_SIX);
    write_configuration(LINES_AT, EIGHT_LINES_ONCE_A_CLOCK);
    poll(OCTAL_READ_STATUS, INSTRUCTION_8 | ADDRESS_8 | DATA_8, STATUS_DUMMY_CYCLES, STATUS_WRITING, 0);
    begin(WRITE, INSTRUCTION_8 | ADDRESS_8 | DATA_8, DUMMY_CYCLES); /* an address would start it */
    THIMBLE_REGISTER(AT(IR)) = OCTAL_READ;
    THIMBLE_REGISTER(AT(CR)) = MAP | BITS(CR_EN);
    cache_up();
}
