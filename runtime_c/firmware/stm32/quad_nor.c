/* SPDX-License-Identifier: Apache-2.0 */
/* A quad NOR flash of 16 MB at the QUADSPI of an STM32F7, read like other memory, by four lines, at the
 * core's clock over THIMBLE_EXTERNAL_DIVIDER: a Micron N25Q128A, or the Winbond W25Q128JV of an
 * STM32F746G-DISCO from revision C-03 on, told apart by their JEDEC identity. Commands as in the flashes'
 * data sheets and in ST's driver (stm32746g_discovery_qspi.c:94, :129, :149, :193 at b639a332). */
#include "registers_quadspi.h"
#include "thimble_board.h"
#include "thimble_firmware.h"
#include "thimble_stm32.h"

#define RESET_ENABLE 0x66u
#define RESET_MEMORY 0x99u
#define READ_IDENTITY 0x9Fu
#define READ_STATUS 0x05u
#define WRITE_ENABLE 0x06u
#define WRITE_VOLATILE_CONFIGURATION 0x81u
#define QUAD_READ 0xEBu /* of four lines for address and data */

/* Manufacturer, kind and capacity, the first in the lowest byte. */
#define N25Q128A 0x18BA20u
#define W25Q128JV 0x1840EFu /* W25Q128JVEIQ: four lines from the factory */
#define IDENTITY 0xFFFFFFu

#define STATUS_WRITING (1u << 0)
#define STATUS_WRITE_ENABLED (1u << 1)

/* N25Q128A: ten dummy cycles, which 108 MHz need; no execution in place, no wrapping. */
#define N25Q128A_DUMMY_CYCLES 10u
#define CONFIGURATION ((N25Q128A_DUMMY_CYCLES << 4) | 0xBu)

/* W25Q128JV: two clocks of a mode byte, which keeps the command where its bits 4 and 5 are not 2, then four
 * dummy cycles: ST's driver counts all six as dummy cycles, and leaves the lines to chance. */
#define W25Q128JV_DUMMY_CYCLES 4u
#define COMMAND_EACH_TIME 0xFFu

/* Modes of each phase: one line, four lines. Functions of CCR: write, read, poll, map. */
#define ONE_LINE 1u
#define FOUR_LINES 3u
#define READ (1u << QUADSPI_CCR_FMODE_Pos)
#define POLL (2u << QUADSPI_CCR_FMODE_Pos)
#define MAP (3u << QUADSPI_CCR_FMODE_Pos)
#define INSTRUCTION(code) ((ONE_LINE << QUADSPI_CCR_IMODE_Pos) | (code))
#define DATA_ON_ONE_LINE (ONE_LINE << QUADSPI_CCR_DMODE_Pos)
#define ADDRESS_OF_24_BITS ((FOUR_LINES << QUADSPI_CCR_ADMODE_Pos) | (2u << QUADSPI_CCR_ADSIZE_Pos))
#define MODE_BYTE (FOUR_LINES << QUADSPI_CCR_ABMODE_Pos)

#define SELECT_HIGH_CYCLES 6u /* 50 ns between commands that do not read */
#define POLLING_CLOCKS 16u

static int32_t finish(void)
{
    if (thimble_answers(QUADSPI_SR, QUADSPI_SR_TCF, QUADSPI_SR_TCF) == 0) {
        return 0;
    }
    THIMBLE_REGISTER(QUADSPI_FCR) = QUADSPI_FCR_CTCF;
    return thimble_answers(QUADSPI_SR, QUADSPI_SR_BUSY, 0);
}

static int32_t command(uint32_t code)
{
    THIMBLE_REGISTER(QUADSPI_CCR) = INSTRUCTION(code);
    return finish();
}

static int32_t write_byte(uint32_t code, uint32_t value)
{
    THIMBLE_REGISTER(QUADSPI_DLR) = 0; /* one byte */
    THIMBLE_REGISTER(QUADSPI_CCR) = INSTRUCTION(code) | DATA_ON_ONE_LINE;
    THIMBLE_REGISTER_BYTE(QUADSPI_DR) = (uint8_t)value;
    return finish();
}

/* Four bytes, the first in the lowest. */
static int32_t read_word(uint32_t code, uint32_t *value)
{
    THIMBLE_REGISTER(QUADSPI_DLR) = 3u;
    THIMBLE_REGISTER(QUADSPI_CCR) = READ | INSTRUCTION(code) | DATA_ON_ONE_LINE;
    if (finish() == 0) {
        return 0;
    }
    *value = THIMBLE_REGISTER(QUADSPI_DR);
    return 1;
}

/* Until the bits of `mask` in the flash's status are `value`: the controller reads it again and again. */
static int32_t wait_for_status(uint32_t mask, uint32_t value)
{
    THIMBLE_REGISTER(QUADSPI_PSMKR) = mask;
    THIMBLE_REGISTER(QUADSPI_PSMAR) = value;
    THIMBLE_REGISTER(QUADSPI_PIR) = POLLING_CLOCKS;
    THIMBLE_REGISTER(QUADSPI_DLR) = 0;
    THIMBLE_REGISTER(QUADSPI_CCR) = POLL | INSTRUCTION(READ_STATUS) | DATA_ON_ONE_LINE;
    if (thimble_answers(QUADSPI_SR, QUADSPI_SR_SMF, QUADSPI_SR_SMF) == 0) {
        return 0;
    }
    THIMBLE_REGISTER(QUADSPI_FCR) = QUADSPI_FCR_CSMF;
    return thimble_answers(QUADSPI_SR, QUADSPI_SR_BUSY, 0);
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

static int32_t micron_up(void)
{
    return command(WRITE_ENABLE) != 0 && wait_for_status(STATUS_WRITE_ENABLED, STATUS_WRITE_ENABLED) != 0 &&
           write_byte(WRITE_VOLATILE_CONFIGURATION, CONFIGURATION) != 0 &&
           wait_for_status(STATUS_WRITING, 0) != 0;
}

int32_t thimble_external_init(uint32_t *identity)
{
    const uint32_t read =
        MAP | INSTRUCTION(QUAD_READ) | ADDRESS_OF_24_BITS | (FOUR_LINES << QUADSPI_CCR_DMODE_Pos);
    controller_up();
    if (command(RESET_ENABLE) == 0 || command(RESET_MEMORY) == 0 || wait_for_status(STATUS_WRITING, 0) == 0 ||
        read_word(READ_IDENTITY, identity) == 0) {
        return THIMBLE_BESIDE_SILENT;
    }
    *identity &= IDENTITY;
    switch (*identity) {
    case N25Q128A:
        if (micron_up() == 0) {
            return THIMBLE_BESIDE_SILENT;
        }
        THIMBLE_REGISTER(QUADSPI_CCR) = read | (N25Q128A_DUMMY_CYCLES << QUADSPI_CCR_DCYC_Pos);
        break;
    case W25Q128JV:
        THIMBLE_REGISTER(QUADSPI_ABR) = COMMAND_EACH_TIME;
        THIMBLE_REGISTER(QUADSPI_CCR) = read | MODE_BYTE | (W25Q128JV_DUMMY_CYCLES << QUADSPI_CCR_DCYC_Pos);
        break;
    default:
        return THIMBLE_BESIDE_UNKNOWN;
    }
    thimble_mpu_allow_constants(THIMBLE_EXTERNAL_ORIGIN, THIMBLE_EXTERNAL_SIZE_LOG2);
    return 0;
}
