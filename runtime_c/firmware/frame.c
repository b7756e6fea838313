/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_frame.h"

#ifdef THIMBLE_BESIDE
/* Megabytes are checked at the start: 64 bytes of table are a quarter of the time. */
static const uint32_t shifted_in[16] = {
    0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
    0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
};

/* By four bits. */
static uint32_t shifted(uint32_t crc)
{
    return (crc >> 4) ^ shifted_in[crc & 15u];
}
#else
static uint32_t shifted(uint32_t crc)
{
    for (int32_t bit = 0; bit < 4; bit++) {
        crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
    }
    return crc;
}
#endif

uint32_t thimble_crc32(uint32_t crc, const uint8_t *data, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        crc = shifted(shifted(crc));
    }
    return ~crc;
}

/* The zero byte has come: is what it ends a frame? */
static thimble_frame_status finish(thimble_frame *frame)
{
    if (frame->length > THIMBLE_FRAME_BODY_BYTES) {
        return THIMBLE_FRAME_TOO_LONG;
    }
    if (frame->block_left != 0) {
        return THIMBLE_FRAME_MALFORMED;
    }
    if (frame->length <= THIMBLE_FRAME_CRC_BYTES) {
        return THIMBLE_FRAME_CHECKSUM;
    }
    frame->length -= THIMBLE_FRAME_CRC_BYTES;
    uint32_t crc = thimble_crc32(0, frame->body, frame->length);
    for (uint32_t i = 0; i < THIMBLE_FRAME_CRC_BYTES; i++) {
        if (frame->body[frame->length + i] != (uint8_t)(crc >> (8u * i))) {
            return THIMBLE_FRAME_CHECKSUM;
        }
    }
    return THIMBLE_FRAME_OK;
}

static void append(thimble_frame *frame, uint8_t byte)
{
    if (frame->length < THIMBLE_FRAME_BODY_BYTES) {
        frame->body[frame->length] = byte;
    }
    if (frame->length <= THIMBLE_FRAME_BODY_BYTES) {
        frame->length++;
    }
}

thimble_frame_status thimble_frame_decode(thimble_frame *frame, uint8_t byte)
{
    if (byte == 0) {
        const uint8_t began = frame->block;
        const thimble_frame_status status = began == 0 ? THIMBLE_FRAME_MORE : finish(frame);
        frame->block = 0;
        frame->block_left = 0;
        return status;
    }
    if (frame->block_left != 0) {
        frame->block_left--;
        append(frame, byte);
        return THIMBLE_FRAME_MORE;
    }
    if (frame->block == 0) {
        frame->length = 0;
    } else if (frame->block != 0xFF) {
        append(frame, 0);
    } else {
        /* A full block stands for no zero. */
    }
    frame->block = byte;
    frame->block_left = (uint8_t)(byte - 1u);
    return THIMBLE_FRAME_MORE;
}

void thimble_frame_encode(thimble_frame *frame, void (*put)(uint8_t byte))
{
    const uint32_t crc = thimble_crc32(0, frame->body, frame->length);
    for (uint32_t i = 0; i < THIMBLE_FRAME_CRC_BYTES; i++) {
        frame->body[frame->length++] = (uint8_t)(crc >> (8u * i));
    }
    uint32_t start = 0;
    uint8_t code = 0;
    do {
        uint32_t end = start;
        while (end < frame->length && end - start < 254u && frame->body[end] != 0) {
            end++;
        }
        code = (uint8_t)(end - start + 1u);
        put(code);
        while (start < end) {
            put(frame->body[start++]);
        }
        if (code != 0xFF) {
            start++; /* the zero that the code stands for, or the imagined one after the end */
        }
    } while (start < frame->length || (start == frame->length && code != 0xFF));
    put(0);
}
