/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_weights.h"

#include <string.h>

#define FORMAT 1u

/* Offsets in a header: version of the format and bytes of the header, bytes of the blob, CRC, digest. */
#define AT_FORMAT 4u
#define AT_HEADER 6u
#define AT_SIZE 8u
#define AT_CRC 12u
#define AT_LAYOUT 16u

static uint32_t little_endian(const uint8_t *at, uint32_t bytes)
{
    uint32_t value = 0u;

    for (uint32_t i = 0u; i < bytes; i++) {
        value |= (uint32_t)at[i] << (8u * i);
    }
    return value;
}

int32_t thimble_check_weights_header(const uint8_t *header,
                                     uint32_t size_bytes,
                                     const uint8_t layout[THIMBLE_WEIGHTS_DIGEST_BYTES],
                                     uint32_t expected)
{
    static const uint8_t magic[4] = {'T', 'H', 'W', 'B'};

    if ((size_bytes < THIMBLE_WEIGHTS_HEADER_BYTES) || (memcmp(header, magic, sizeof(magic)) != 0)) {
        return THIMBLE_WEIGHTS_NO_BLOB;
    }
    if ((little_endian(&header[AT_FORMAT], 2u) != FORMAT) ||
        (little_endian(&header[AT_HEADER], 2u) != THIMBLE_WEIGHTS_HEADER_BYTES)) {
        return THIMBLE_WEIGHTS_VERSION;
    }
    if (memcmp(&header[AT_LAYOUT], layout, THIMBLE_WEIGHTS_DIGEST_BYTES) != 0) {
        return THIMBLE_WEIGHTS_MODEL;
    }
    if (size_bytes < expected) {
        return THIMBLE_WEIGHTS_SHORT;
    }
    return (little_endian(&header[AT_SIZE], 4u) != expected) ? THIMBLE_WEIGHTS_DAMAGED : 0;
}

uint32_t thimble_weights_expected_crc(const uint8_t *header)
{
    return little_endian(&header[AT_CRC], 4u);
}
