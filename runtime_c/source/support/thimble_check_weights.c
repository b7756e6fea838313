/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_weights.h"

#include <stddef.h>

#define ALIGNMENT 8u

int32_t thimble_check_weights(const uint8_t *blob,
                              uint32_t size_bytes,
                              const uint8_t layout[THIMBLE_WEIGHTS_DIGEST_BYTES],
                              uint32_t expected)
{
    int32_t status = 0;

    if (blob == NULL) {
        return THIMBLE_WEIGHTS_MISSING;
    }
    if (((uintptr_t)blob % ALIGNMENT) != 0u) {
        return THIMBLE_WEIGHTS_MISALIGNED;
    }
    status = thimble_check_weights_header(blob, size_bytes, layout, expected);
    if (status == 0) {
        const uint8_t *const checked = &blob[THIMBLE_WEIGHTS_CHECKED_FROM];
        const uint32_t crc = thimble_weights_crc32(0u, checked, expected - THIMBLE_WEIGHTS_CHECKED_FROM);

        status = (crc == thimble_weights_expected_crc(blob)) ? 0 : THIMBLE_WEIGHTS_DAMAGED;
    }
    return status;
}
