/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_weights.h"

#include <stddef.h>
#include <string.h>

#define FORMAT 1u
#define ALIGNMENT 8u

/* Offsets of a blob: format and bytes of the header, bytes, CRC, from where the CRC counts, digest. */
enum { AT_FORMAT = 4, AT_HEADER = 6, AT_SIZE = 8, AT_CRC = 12, CHECKED_FROM = 16, AT_LAYOUT = 16 };

static uint32_t little_endian(const uint8_t *at, uint32_t bytes)
{
    uint32_t value = 0;

    for (uint32_t i = 0; i < bytes; i++) {
        value |= (uint32_t)at[i] << (8u * i);
    }
    return value;
}

/* CRC-32 (IEEE 802.3), four bits at a time. */
static uint32_t crc_of(const uint8_t *data, uint32_t size_bytes)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u,
        0x4DB26158u, 0x5005713Cu, 0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu,
        0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
    };
    uint32_t crc = 0xFFFFFFFFu;

    for (uint32_t i = 0; i < size_bytes; i++) {
        crc ^= data[i];
        crc = (crc >> 4) ^ table[crc & 15u];
        crc = (crc >> 4) ^ table[crc & 15u];
    }
    return ~crc;
}

int32_t thimble_check_weights(const uint8_t *blob,
                              uint32_t size_bytes,
                              const uint8_t layout[THIMBLE_WEIGHTS_DIGEST_BYTES],
                              uint32_t expected)
{
    static const uint8_t magic[4] = {'T', 'H', 'W', 'B'};

    if (blob == NULL) {
        return THIMBLE_WEIGHTS_MISSING;
    }
    if ((uintptr_t)blob % ALIGNMENT != 0) {
        return THIMBLE_WEIGHTS_MISALIGNED;
    }
    if (size_bytes < THIMBLE_WEIGHTS_HEADER_BYTES || memcmp(blob, magic, sizeof(magic)) != 0) {
        return THIMBLE_WEIGHTS_NO_BLOB;
    }
    if (little_endian(blob + AT_FORMAT, 2) != FORMAT ||
        little_endian(blob + AT_HEADER, 2) != THIMBLE_WEIGHTS_HEADER_BYTES) {
        return THIMBLE_WEIGHTS_VERSION;
    }
    if (memcmp(blob + AT_LAYOUT, layout, THIMBLE_WEIGHTS_DIGEST_BYTES) != 0) {
        return THIMBLE_WEIGHTS_MODEL;
    }

    if (size_bytes < expected) {
        return THIMBLE_WEIGHTS_SHORT;
    }
    if (little_endian(blob + AT_SIZE, 4) != expected ||
        crc_of(blob + CHECKED_FROM, expected - CHECKED_FROM) != little_endian(blob + AT_CRC, 4)) {
        return THIMBLE_WEIGHTS_DAMAGED;
    }
    return 0;
}
