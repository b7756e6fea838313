/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the memory beside the chip holds what was built: weights in a flash that another tool wrote, or
 * that was read with the wrong command, would be wrong without a word. */
#include "thimble_firmware.h"

/* From the linker script. */
typedef struct {
    const uint8_t *from;
    uint32_t size_bytes;
} part;
extern const part thimble_beside_parts[];
extern const part thimble_beside_parts_end[];
extern const uint32_t thimble_beside_checksum;

thimble_beside_state thimble_beside;

void thimble_beside_check(int32_t status, uint32_t identity)
{
    uint32_t crc = 0;
    thimble_beside.status = status;
    thimble_beside.identity = identity;
    if (status != 0) {
        return;
    }
    for (const part *each = thimble_beside_parts; each != thimble_beside_parts_end; each++) {
        crc = thimble_crc32(crc, each->from, each->size_bytes);
    }
    if (crc != thimble_beside_checksum) {
        thimble_beside.status = THIMBLE_BESIDE_DAMAGED;
    }
}
