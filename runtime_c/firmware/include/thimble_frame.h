/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the serial protocol (docs/protocol.md): COBS, a zero byte at the end, CRC-32 inside. */
#ifndef THIMBLE_FRAME_H
#define THIMBLE_FRAME_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of tensor data that fit one frame, and of a whole decoded body: version, type, sequence (4 bytes),
 * at most 5 bytes of index and offset, data, CRC-32. */
#define THIMBLE_FRAME_DATA_BYTES 256u
#define THIMBLE_FRAME_HEADER_BYTES 6u
#define THIMBLE_FRAME_CRC_BYTES 4u
#define THIMBLE_FRAME_BODY_BYTES                                                                             \
    (THIMBLE_FRAME_HEADER_BYTES + 5u + THIMBLE_FRAME_DATA_BYTES + THIMBLE_FRAME_CRC_BYTES)

typedef enum {
    THIMBLE_FRAME_MORE = -1,     /* no frame ended with this byte */
    THIMBLE_FRAME_OK = 0,        /* `body` holds a frame; its CRC is right and left out of `length` */
    THIMBLE_FRAME_CHECKSUM = 1,  /* CRC-32 differs, or the body has nothing before it */
    THIMBLE_FRAME_MALFORMED = 2, /* the zero byte came inside a COBS block */
    THIMBLE_FRAME_TOO_LONG = 3,  /* more than THIMBLE_FRAME_BODY_BYTES */
} thimble_frame_status;

/* A decoder and its buffer; all zero is a decoder between frames. */
typedef struct {
    uint32_t length;
    uint8_t block;      /* length code of the running COBS block, 0 between frames */
    uint8_t block_left; /* data bytes that the running block still holds */
    uint8_t body[THIMBLE_FRAME_BODY_BYTES];
} thimble_frame;

/* CRC-32 of IEEE 802.3 (reflected, 0xEDB88320), continued from `crc`; start with 0. */
uint32_t thimble_crc32(uint32_t crc, const uint8_t *data, size_t length);

/* Feed one byte from the line. After any status but MORE the next byte starts a new frame. */
thimble_frame_status thimble_frame_decode(thimble_frame *frame, uint8_t byte);

/* Append the CRC-32 to the `length` bytes of `body` and send it all as one frame through `put`. */
void thimble_frame_encode(thimble_frame *frame, void (*put)(uint8_t byte));

#endif
