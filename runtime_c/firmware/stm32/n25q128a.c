/* SPDX-License-Identifier: Apache-2.0 */
/* A Micron N25Q128A (16 MB, NOR) at the QUADSPI of an STM32F7: read like other memory, by four lines, at the
 * core's clock over THIMBLE_EXTERNAL_DIVIDER. Commands as in the flash's data sheet and in ST's driver
 * (n25q128a.h, stm32746g_discovery_qspi.c). */
#include "registers_quadspi.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define RESET_ENABLE 0x66u
#define RESET_MEMORY 0x99u
#define READ_STATUS 0x05u
#define WRITE_ENABLE 0x06u
#define WRITE_VOLATILE_CONFIGURATION 0x81u
#define QUAD_READ 0xEBu /* of four lines for address and data */

#define STATUS_WRITING (1u << 0)
#define STATUS_WRITE_ENABLED (1u << 1)

/* Ten dummy cycles, which 108 MHz need; no execution in place, no wrapping (volatile configuration register).
 */
#define DUMMY_CYCLES 10u
#define CONFIGURATION ((DUMMY_CYCLES << 4) | 0xBu)

/* Modes of each phase: one line, four lines. Functions of CCR: write, poll, map. */
#define ONE_LINE 1u
#define FOUR_LINES 3u
#define POLL (2u << QUADSPI_CCR_FMODE_Pos)
#define MAP (3u << QUADSPI_CCR_FMODE_Pos)
#define INSTRUCTION(code) ((ONE_LINE << QUADSPI_CCR_IMODE_Pos) | (code))
#define DATA_ON_ONE_LINE (ONE_LINE << QUADSPI_CCR_DMODE_Pos)
#define ADDRESS_OF_24_BITS ((FOUR_LINES << QUADSPI_CCR_ADMODE_Pos) | (2u << QUADSPI_CCR_ADSIZE_Pos))

#define SELECT_HIGH_CYCLES 6u /* 50 ns between commands that do not read */
#define POLLING_CLOCKS 16u

static void finish(void)
{
    thimble_wait_set(QUADSPI_SR, QUADSPI_SR_TCF);
    THIMBLE_REGISTER(QUADSPI_FCR) = QUADSPI_FCR_CTCF;
    thimble_wait_clear(QUADSPI_SR, QUADSPI_SR_BUSY);
}

static void command(uint32_t code)
{
    THIMBLE_REGISTER(QUADSPI_CCR) = INSTRUCTION(code);
    finish();
}

static void write_byte(uint32_t code, uint32_t value)
{
    THIMBLE_REGISTER(QUADSPI_DLR) = 0; /* one byte */
    THIMBLE_REGISTER(QUADSPI_CCR) = INSTRUCTION(code) | DATA_ON_ONE_LINE;
    THIMBLE_REGISTER_BYTE(QUADSPI_DR) = (uint8_t)value;
    finish();
}

/* Until the bits of `mask` in the flash's status are `value`: the controller reads it again and again. */
static void wait_for_status(uint32_t mask, uint32_t value)
{
    THIMBLE_REGISTER(QUADSPI_PSMKR) = mask;
    THIMBLE_REGISTER(QUADSPI_PSMAR) = value;
    THIMBLE_REGISTER(QUADSPI_PIR) = POLLING_CLOCKS;
    THIMBLE_REGISTER(QUADSPI_DLR) = 0;
    THIMBLE_REGISTER(QUADSPI_CCR) = POLL | INSTRUCTION(READ_STATUS) | DATA_ON_ONE_LINE;
    thimble_wait_set(QUADSPI_SR, QUADSPI_SR_SMF);
    THIMBLE_REGISTER(QUADSPI_FCR) = QUADSPI_FCR_CSMF;
    thimble_wait_clear(QUADSPI_SR, QUADSPI_SR_BUSY);
}

static void controller_up(void)
{
    thimble_clock_enable(RCC_AHB3ENR, RCC_AHB3ENR_QSPIEN);
    THIMBLE_REGISTER(RCC_AHB3RSTR) |= RCC_AHB3RSTR_QSPIRST;
    THIMBLE_REGISTER(RCC_AHB3RSTR) &= ~RCC_AHB3RSTR_QSPIRST;
    thimble_stm32_external_pins();
    THIMBLE_REGISTER(QUADSPI_DCR) = ((THIMBLE_EXTERNAL_SIZE_LOG2 - 1u) << QUADSPI_DCR_FSIZE_Pos) |
                                    ((SELECT_HIGH_CYCLES - 1u) << QUADSPI_DCR_CSHT_Pos);
    THIMBLE_REGISTER(QUADSPI_CR) = ((THIMBLE_EXTERNAL_DIVIDER - 1u) << QUADSPI_CR_PRESCALER_Pos) |
                                   QUADSPI_CR_APMS | QUADSPI_CR_SSHIFT | QUADSPI_CR_EN;
}

void thimble_external_init(void)
{
    controller_up();
    command(RESET_ENABLE);
    command(RESET_MEMORY);
    wait_for_status(STATUS_WRITING, 0);
    command(WRITE_ENABLE);
    wait_for_status(STATUS_WRITE_ENABLED, STATUS_WRITE_ENABLED);
    write_byte(WRITE_VOLATILE_CONFIGURATION, CONFIGURATION);
    wait_for_status(STATUS_WRITING, 0);
    THIMBLE_REGISTER(QUADSPI_CCR) = MAP | INSTRUCTION(QUAD_READ) | ADDRESS_OF_24_BITS |
                                    (DUMMY_CYCLES << QUADSPI_CCR_DCYC_Pos) |
                                    (FOUR_LINES << QUADSPI_CCR_DMODE_Pos);
    thimble_mpu_allow_constants(THIMBLE_EXTERNAL_ORIGIN, THIMBLE_EXTERNAL_SIZE_LOG2);
}
