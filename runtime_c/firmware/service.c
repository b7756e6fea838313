/* SPDX-License-Identifier: Apache-2.0 */
/* The service loop of docs/protocol.md: one request, one reply, nothing changed by a bad frame. */
#include "thimble_board.h"
#include "thimble_firmware.h"

#ifdef THIMBLE_ID_REGISTER
#include "thimble_cortex_m.h"
#endif

#include <string.h>

#define PROTOCOL_VERSION 2u

enum { AT_VERSION = 0, AT_TYPE = 1, AT_SEQUENCE = 2, AT_PAYLOAD = THIMBLE_FRAME_HEADER_BYTES };

enum {
    TYPE_HELLO = 0x01,
    TYPE_DESCRIBE = 0x02,
    TYPE_WRITE = 0x03,
    TYPE_RUN = 0x04,
    TYPE_READ = 0x05,
    TYPE_COUNTS = 0x06,
    TYPE_MEMORY = 0x07,
    TYPE_FAULT = 0x08,
    TYPE_RESET = 0x09,
    TYPE_EXIT = 0x0A,
    TYPE_PATTERN = 0x0B,
    TYPE_TIME = 0x0C,
    TYPE_CLEAR = 0x0D,
    TYPE_REPLY = 0x80,
    TYPE_CRASHED = 0xFE,
    TYPE_ERROR = 0xFF,
};

enum {
    ERROR_VERSION = 4,
    ERROR_TYPE = 5,
    ERROR_LENGTH = 6,
    ERROR_INDEX = 7,
    ERROR_RANGE = 8,
    ERROR_ORDER = 9,
};

enum { FLAG_CYCLES = 1, FLAG_FAULT = 2, FLAG_EXIT = 4 };

/* The answer to the last RUN or TIME, so that one sent again after a lost reply is not run again. */
typedef struct {
    uint32_t sequence;
    int32_t status;
    uint64_t total;
} last_run;

uint32_t thimble_model_index;
static thimble_frame frame;
static last_run last;

/* Sequence of the last request that was served; 0 from a reset until the first HELLO. A request that is
 * neither that one again nor the next is refused: it is late, of another connection, or the host has not
 * seen that the board was reset, and would take what it reads now for the answer to what it wrote before. */
static uint32_t served;

static void put_u8(uint32_t value)
{
    frame.body[frame.length++] = (uint8_t)value;
}

static void put_u16(uint32_t value)
{
    put_u8(value);
    put_u8(value >> 8);
}

static void put_u32(uint32_t value)
{
    put_u16(value);
    put_u16(value >> 16);
}

static void put_u64(uint64_t value)
{
    put_u32((uint32_t)value);
    put_u32((uint32_t)(value >> 32));
}

static void put_bytes(const void *data, uint32_t length)
{
    (void)memcpy(&frame.body[frame.length], data, length);
    frame.length += length;
}

/* At most 64 characters of a name, and a zero. */
static void put_name(const char *name)
{
    for (uint32_t i = 0; i < 64u && name[i] != '\0'; i++) {
        put_u8((uint8_t)name[i]);
    }
    put_u8(0);
}

static uint32_t get_u16(uint32_t at)
{
    return (uint32_t)frame.body[at] | ((uint32_t)frame.body[at + 1u] << 8);
}

static uint32_t get_u32(uint32_t at)
{
    return get_u16(at) | (get_u16(at + 2u) << 16);
}

static void reply(uint32_t type)
{
    frame.body[AT_TYPE] = (uint8_t)type;
    frame.length = AT_PAYLOAD;
}

static void reply_error(uint32_t code)
{
    reply(TYPE_ERROR);
    put_u8(code);
}

/* The shared arena is painted anew for another model, which has another high-water mark. */
static void choose_model(uint32_t index)
{
    if (thimble_model_index != index) {
        thimble_model_index = index;
        if (thimble_the_model->reset == NULL) {
            thimble_arena_paint(thimble_the_model);
        }
    }
}

/* The clock that was set, and which chip this is: 0 where no register says it. Then the memory beside it. */
static void put_chip(void)
{
    put_u32(thimble_board_clock_hz());
#ifdef THIMBLE_ID_REGISTER
    put_u32(THIMBLE_REGISTER(THIMBLE_ID_REGISTER));
#else
    put_u32(0);
#endif
#ifdef THIMBLE_BESIDE
    put_u32((uint32_t)thimble_beside.status);
    put_u32(thimble_beside.identity);
#else
    put_u64(0);
#endif
}

/* Payload: nothing, or the model that the requests to come are about. */
static void serve_hello(uint32_t payload_bytes)
{
    const uint32_t index = payload_bytes != 0 ? frame.body[AT_PAYLOAD] : 0u;
    if (index >= thimble_model_count) {
        reply_error(ERROR_INDEX);
        return;
    }
    choose_model(index);
    const thimble_model *model = thimble_the_model;
    uint32_t flags = thimble_fault.magic == THIMBLE_FAULT_MAGIC ? FLAG_FAULT : 0;
#ifdef THIMBLE_COUNTER_CYCLES
    flags |= FLAG_CYCLES;
#endif
#ifdef THIMBLE_EMULATED
    flags |= FLAG_EXIT;
#endif
    reply(TYPE_REPLY | TYPE_HELLO);
    put_u8(flags);
    put_u16(THIMBLE_FRAME_DATA_BYTES);
    put_u16(model->input_count);
    put_u16(model->output_count);
    put_u16(model->operator_counts != NULL ? model->operator_count : 0u);
    put_u32(model->arena_bytes);
    put_u32((uint32_t)((uintptr_t)thimble_stack_high - (uintptr_t)thimble_stack_low));
    put_bytes(model->build_id, sizeof model->build_id);
    put_name(model->board);
    put_name(model->name);
    put_u8(thimble_model_count);
    put_chip();
}

/* The tensor that a request names by direction (0 input, 1 output) and index; NULL if there is none. */
static const thimble_tensor *find_tensor(uint32_t is_output, uint32_t index)
{
    const uint32_t count = is_output ? thimble_the_model->output_count : thimble_the_model->input_count;
    const thimble_tensor *table = is_output ? thimble_the_model->outputs : thimble_the_model->inputs;
    return is_output <= 1u && index < count ? &table[index] : NULL;
}

/* Payload: direction, index. */
static void serve_describe(void)
{
    const thimble_tensor *tensor = find_tensor(frame.body[AT_PAYLOAD], frame.body[AT_PAYLOAD + 1]);
    if (tensor == NULL) {
        reply_error(ERROR_INDEX);
        return;
    }
    reply(TYPE_REPLY | TYPE_DESCRIBE);
    put_u32(tensor->size_bytes);
    put_u8(tensor->type);
    put_name(tensor->name);
}

static int32_t in_range(uint32_t offset, uint32_t length, uint32_t size)
{
    return offset <= size && length <= size - offset;
}

/* Payload: index, offset (32 bits), data. */
static void serve_write(uint32_t payload_bytes)
{
    const uint32_t data_bytes = payload_bytes - 5u;
    const uint32_t offset = get_u32(AT_PAYLOAD + 1);
    const thimble_tensor *tensor = find_tensor(0, frame.body[AT_PAYLOAD]);
    if (tensor == NULL) {
        reply_error(ERROR_INDEX);
    } else if (!in_range(offset, data_bytes, tensor->size_bytes)) {
        reply_error(ERROR_RANGE);
    } else {
        (void)memcpy(&tensor->data[offset], &frame.body[AT_PAYLOAD + 5], data_bytes);
        reply(TYPE_REPLY | TYPE_WRITE);
    }
}

/* The top bytes of xorshift32 (Marsaglia 2003). */
static void fill_pattern(uint8_t *data, uint32_t size_bytes, uint32_t state)
{
    for (uint32_t i = 0; i < size_bytes; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        data[i] = (uint8_t)(state >> 24);
    }
}

/* Payload: index, seed (32 bits, not 0). */
static void serve_pattern(void)
{
    const thimble_tensor *tensor = find_tensor(0, frame.body[AT_PAYLOAD]);
    const uint32_t seed = get_u32(AT_PAYLOAD + 1);
    if (tensor == NULL) {
        reply_error(ERROR_INDEX);
    } else if (seed == 0) {
        reply_error(ERROR_RANGE);
    } else {
        fill_pattern(tensor->data, tensor->size_bytes, seed);
        reply(TYPE_REPLY | TYPE_PATTERN);
    }
}

/* The answer to RUN and TIME. It says of which firmware and model: a copy of an old HELLO may have greeted a
 * board that was given another one since. */
static void put_outcome(uint32_t type)
{
    reply(TYPE_REPLY | type);
    put_u32((uint32_t)last.status);
    put_u64(last.total);
    put_bytes(thimble_the_model->build_id, 4);
    put_u8(thimble_model_index);
}

/* Not on weights that are not those of the model. */
static int32_t run_once(void)
{
#ifdef THIMBLE_BESIDE
    if (thimble_beside.status != 0) {
        last.total = 0;
        return thimble_beside.status;
    }
#endif
    return thimble_measured_run(&last.total);
}

static void serve_run(void)
{
    const uint32_t sequence = get_u32(AT_SEQUENCE);
    if (last.sequence != sequence) {
        last.sequence = 0;
        last.status = run_once();
        last.sequence = sequence;
    }
    put_outcome(TYPE_RUN);
}

/* Payload: index, offset (32 bits), length (16 bits). */
static void serve_read(void)
{
    const uint32_t offset = get_u32(AT_PAYLOAD + 1);
    const uint32_t length = get_u16(AT_PAYLOAD + 5);
    const thimble_tensor *tensor = find_tensor(1, frame.body[AT_PAYLOAD]);
    if (tensor == NULL) {
        reply_error(ERROR_INDEX);
    } else if (length > THIMBLE_FRAME_DATA_BYTES || !in_range(offset, length, tensor->size_bytes)) {
        reply_error(ERROR_RANGE);
    } else {
        const uint8_t *data = tensor->data;
        if (data == NULL) {
            data = tensor->constant(thimble_the_model->arena);
        }
        reply(TYPE_REPLY | TYPE_READ);
        put_bytes(&data[offset], length);
    }
}

/* Payload: first operator (16 bits). */
static void serve_counts(void)
{
    const thimble_model *model = thimble_the_model;
    const uint32_t first = get_u16(AT_PAYLOAD);
    const uint32_t total = model->operator_counts != NULL ? model->operator_count : 0u;
    if (first > total) {
        reply_error(ERROR_INDEX);
        return;
    }
    reply(TYPE_REPLY | TYPE_COUNTS);
    for (uint32_t i = first; i < total && i - first < THIMBLE_FRAME_DATA_BYTES / 8u; i++) {
        put_u64(model->operator_counts[i]);
    }
}

static void serve_memory(void)
{
    reply(TYPE_REPLY | TYPE_MEMORY);
    put_u32(thimble_stack_used_bytes());
    put_u32(thimble_arena_used_bytes());
}

static void put_fault(uint32_t type)
{
    reply(type);
    if (thimble_fault.magic == THIMBLE_FAULT_MAGIC) {
        put_bytes(thimble_fault.words, sizeof thimble_fault.words);
    }
}

static void send(void)
{
    thimble_frame_encode(&frame, thimble_uart_put);
}

void thimble_serve_fault(void)
{
    put_fault(TYPE_CRASHED);
    send();
    thimble_uart_flush();
}

#ifdef THIMBLE_KERNELS
/* Payload: kernel (16 bits), seed (32 bits, not 0). Times one kernel on an arena of pseudo-random bytes. */
static void serve_time(void)
{
    const uint32_t index = get_u16(AT_PAYLOAD);
    const uint32_t seed = get_u32(AT_PAYLOAD + 2);
    if (index >= thimble_kernel_count) {
        reply_error(ERROR_INDEX);
    } else if (seed == 0) {
        reply_error(ERROR_RANGE);
    } else {
        const uint32_t sequence = get_u32(AT_SEQUENCE);
        if (last.sequence != sequence) {
            last.sequence = 0;
            fill_pattern(thimble_the_model->arena, thimble_the_model->arena_bytes, seed);
            last.status = thimble_timed_kernel(index, &last.total);
            last.sequence = sequence;
        }
        put_outcome(TYPE_TIME);
    }
}
#endif

/* Fewest and most payload bytes of each request type, from HELLO on. */
static const uint16_t payload_bounds[TYPE_CLEAR][2] = {
    {0, 1}, {2, 2}, {5, 5 + THIMBLE_FRAME_DATA_BYTES},
    {0, 0}, {7, 7}, {2, 2},
    {0, 0}, {0, 0}, {0, 0},
    {0, 0}, {5, 5}, {6, 6},
    {0, 0},
};

/* Whether the request is HELLO, the last one served, or the one after it; takes note of it. */
static int32_t in_order(uint32_t type)
{
    const uint32_t sequence = get_u32(AT_SEQUENCE);
    const uint32_t next = served == UINT32_MAX ? 1u : served + 1u;
    if (sequence == 0 || (type != TYPE_HELLO && (served == 0 || (sequence != served && sequence != next)))) {
        return 0;
    }
    served = sequence;
    return 1;
}

static uint32_t check_request(uint32_t type, uint32_t payload_bytes)
{
    if (!in_order(type)) {
        return ERROR_ORDER;
    }
    if (type < TYPE_HELLO || type > TYPE_CLEAR) {
        return ERROR_TYPE;
    }
#ifndef THIMBLE_KERNELS
    if (type == TYPE_TIME) {
        return ERROR_TYPE;
    }
#endif
#ifndef THIMBLE_EMULATED
    if (type == TYPE_EXIT) {
        return ERROR_TYPE;
    }
#endif
    const uint16_t *bounds = payload_bounds[type - TYPE_HELLO];
    return payload_bytes < bounds[0] || payload_bytes > bounds[1] ? ERROR_LENGTH : 0u;
}

/* An error about a frame whose sequence is not known. */
static void reply_unread(uint32_t code)
{
    frame.body[AT_VERSION] = PROTOCOL_VERSION;
    (void)memset(&frame.body[AT_SEQUENCE], 0, 4);
    reply_error(code);
}

/* Turns the request in `frame` into its reply. */
static void serve_request(void)
{
    if (frame.body[AT_VERSION] != PROTOCOL_VERSION || frame.length < AT_PAYLOAD) {
        reply_unread(frame.body[AT_VERSION] != PROTOCOL_VERSION ? ERROR_VERSION
                                                                : (uint32_t)THIMBLE_FRAME_CHECKSUM);
        return;
    }
    const uint32_t type = frame.body[AT_TYPE];
    const uint32_t payload_bytes = frame.length - AT_PAYLOAD;
    const uint32_t error = check_request(type, payload_bytes);
    if (error != 0) {
        reply_error(error);
        return;
    }
    if (type != TYPE_RUN && type != TYPE_TIME) {
        last.sequence = 0;
    }
    switch (type) {
    case TYPE_HELLO:
        serve_hello(payload_bytes);
        break;
    case TYPE_DESCRIBE:
        serve_describe();
        break;
    case TYPE_WRITE:
        serve_write(payload_bytes);
        break;
    case TYPE_PATTERN:
        serve_pattern();
        break;
#ifdef THIMBLE_KERNELS
    case TYPE_TIME:
        serve_time();
        break;
#endif
    case TYPE_RUN:
        serve_run();
        break;
    case TYPE_READ:
        serve_read();
        break;
    case TYPE_COUNTS:
        serve_counts();
        break;
    case TYPE_MEMORY:
        serve_memory();
        break;
    case TYPE_CLEAR:
        thimble_state_reset(thimble_the_model);
        reply(TYPE_REPLY | TYPE_CLEAR);
        break;
    case TYPE_FAULT:
        put_fault(TYPE_REPLY | TYPE_FAULT);
        break;
    default: /* RESET and EXIT act after the reply */
        reply(TYPE_REPLY | type);
        break;
    }
}

void thimble_serve(void)
{
    for (;;) {
        const thimble_frame_status status = thimble_frame_decode(&frame, thimble_uart_get());
        if (status == THIMBLE_FRAME_MORE) {
            continue;
        }
        uint32_t done = 0;
        if (status == THIMBLE_FRAME_OK) {
            serve_request();
            done = frame.body[AT_TYPE];
        } else {
            reply_unread((uint32_t)status);
        }
        send();
        if (done == (TYPE_REPLY | TYPE_RESET)) {
            thimble_fault_mark(0);
            thimble_uart_flush();
            thimble_system_reset();
        }
#ifdef THIMBLE_EMULATED
        if (done == (TYPE_REPLY | TYPE_EXIT)) {
            thimble_emulator_exit();
        }
#endif
    }
}
