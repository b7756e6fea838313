/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that lie outside of the code: is it a blob for this code, and is it whole? */
#ifndef THIMBLE_WEIGHTS_H
#define THIMBLE_WEIGHTS_H

#include <stdint.h>

/** Bytes of the header, behind which the constants lie. */
#define THIMBLE_WEIGHTS_HEADER_BYTES 64u
#define THIMBLE_WEIGHTS_DIGEST_BYTES 16u
/** Where what the CRC covers begins. */
#define THIMBLE_WEIGHTS_CHECKED_FROM 16u

/** What is found wrong, in the order in which it is looked for; 0: nothing. */
enum {
    THIMBLE_WEIGHTS_MISSING = -20,
    THIMBLE_WEIGHTS_MISALIGNED = -21,
    THIMBLE_WEIGHTS_NO_BLOB = -22,
    THIMBLE_WEIGHTS_VERSION = -23,
    THIMBLE_WEIGHTS_MODEL = -24,
    THIMBLE_WEIGHTS_SHORT = -25,
    THIMBLE_WEIGHTS_DAMAGED = -26,
    THIMBLE_WEIGHTS_FETCH = -27
};

/** `layout`: the digest of what the code expects, `expected` the bytes of its blob. `size_bytes`: of the
 * memory that holds it. Reads all of the blob. */
int32_t thimble_check_weights(const uint8_t *blob,
                              uint32_t size_bytes,
                              const uint8_t layout[THIMBLE_WEIGHTS_DIGEST_BYTES],
                              uint32_t expected);

/** The same of the header alone, where the blob is not mapped as memory: all but the CRC. */
int32_t thimble_check_weights_header(const uint8_t *header,
                                     uint32_t size_bytes,
                                     const uint8_t layout[THIMBLE_WEIGHTS_DIGEST_BYTES],
                                     uint32_t expected);

/** The CRC that a header gives: of all that follows its first 16 bytes. */
uint32_t thimble_weights_expected_crc(const uint8_t *header);

/** CRC-32 (IEEE 802.3) of bytes that follow those of which it is `crc`; of the first it is 0. */
uint32_t thimble_weights_crc32(uint32_t crc, const uint8_t *data, uint32_t size_bytes);

#endif
