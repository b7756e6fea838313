/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_places.h"
#include "thimble_run.h"

/* Whether each length is one that a sequence may have. */
static int32_t hold(const thimble_reverse_sequence_params *p, const void *lengths)
{
    const int32_t batches = p->batch_first != 0 ? p->first : p->second;
    const int32_t most = p->batch_first != 0 ? p->second : p->first;
    int32_t good = 1;

    for (int32_t i = 0; i < batches; i++) {
        const int64_t length = thimble_index_at(lengths, p->length_bytes, i);
        good = length < 0 || length > most ? 0 : good;
    }
    return good;
}

/* From where the element at `place` comes. */
static int32_t
mirrored(const thimble_reverse_sequence_params *p, const void *lengths, int32_t batch, int32_t place)
{
    const int32_t length = (int32_t)thimble_index_at(lengths, p->length_bytes, batch);

    return place < length ? length - 1 - place : place;
}

int32_t thimble_reverse_sequence(const thimble_reverse_sequence_params *params,
                                 const void *data,
                                 const void *lengths,
                                 void *target)
{
    const thimble_reverse_sequence_params p = *params;
    const int8_t *source = (const int8_t *)data;
    int8_t *to = (int8_t *)target;

    if (hold(params, lengths) == 0) {
        return -1;
    }
    for (int32_t outer = 0; outer < p.outer; outer++) {
        for (int32_t i = 0; i < p.first; i++) {
            for (int32_t middle = 0; middle < p.middle; middle++) {
                for (int32_t j = 0; j < p.second; j++) {
                    const int32_t row = p.batch_first != 0 ? i : mirrored(params, lengths, j, i);
                    const int32_t column = p.batch_first != 0 ? mirrored(params, lengths, i, j) : j;
                    const int32_t place = (row * p.middle + middle) * p.second + column;
                    thimble_copy_run(to, source + (ptrdiff_t)place * p.run_bytes, p.run_bytes);
                    to += p.run_bytes;
                }
            }
        }
        source += (ptrdiff_t)p.first * p.middle * p.second * p.run_bytes;
    }
    return 0;
}
