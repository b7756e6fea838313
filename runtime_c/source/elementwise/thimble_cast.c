/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_cast.h"

static int64_t integer_at(const void *input, thimble_element from, int32_t place)
{
    switch (from) {
    case THIMBLE_S8:
        return ((const int8_t *)input)[place];
    case THIMBLE_U8:
    case THIMBLE_BOOL:
        return ((const uint8_t *)input)[place];
    case THIMBLE_S16:
        return ((const int16_t *)input)[place];
    case THIMBLE_S32:
        return ((const int32_t *)input)[place];
    case THIMBLE_U32:
        return ((const uint32_t *)input)[place];
    default:
        return ((const int64_t *)input)[place];
    }
}

static int64_t lowest(thimble_element type)
{
    switch (type) {
    case THIMBLE_S8:
        return INT8_MIN;
    case THIMBLE_S16:
        return INT16_MIN;
    case THIMBLE_S32:
        return INT32_MIN;
    case THIMBLE_S64:
        return -INT64_MAX - 1;
    default:
        return 0;
    }
}

static int64_t highest(thimble_element type)
{
    switch (type) {
    case THIMBLE_S8:
        return INT8_MAX;
    case THIMBLE_U8:
        return UINT8_MAX;
    case THIMBLE_S16:
        return INT16_MAX;
    case THIMBLE_S32:
        return INT32_MAX;
    case THIMBLE_U32:
        return UINT32_MAX;
    default:
        return INT64_MAX;
    }
}

static int64_t integer_of(float value, thimble_element to)
{
    const int64_t low = lowest(to);
    const int64_t high = highest(to);

    if (to == THIMBLE_BOOL) {
        return value != 0.0f ? 1 : 0;
    }
    if (!(value > -9223372036854775808.0f)) {
        return low;
    }
    if (value >= 9223372036854775808.0f) {
        return high;
    }
    const int64_t whole = (int64_t)value;
    return whole < low ? low : whole > high ? high : whole;
}

static void put(int64_t value, void *output, thimble_element to, int32_t place)
{
    switch (to) {
    case THIMBLE_S8:
        ((int8_t *)output)[place] = (int8_t)value;
        break;
    case THIMBLE_U8:
        ((uint8_t *)output)[place] = (uint8_t)value;
        break;
    case THIMBLE_BOOL:
        ((uint8_t *)output)[place] = value != 0 ? 1u : 0u;
        break;
    case THIMBLE_S16:
        ((int16_t *)output)[place] = (int16_t)value;
        break;
    case THIMBLE_S32:
        ((int32_t *)output)[place] = (int32_t)value;
        break;
    case THIMBLE_U32:
        ((uint32_t *)output)[place] = (uint32_t)value;
        break;
    case THIMBLE_S64:
        ((int64_t *)output)[place] = value;
        break;
    default:
        ((float *)output)[place] = (float)value;
        break;
    }
}

void thimble_cast(const void *input, thimble_element from, int32_t count, void *output, thimble_element to)
{
    for (int32_t i = 0; i < count; i++) {
        if (from == THIMBLE_F32 && to == THIMBLE_F32) {
            ((float *)output)[i] = ((const float *)input)[i];
        } else if (from == THIMBLE_F32) {
            put(integer_of(((const float *)input)[i], to), output, to, i);
        } else {
            put(integer_at(input, from, i), output, to, i);
        }
    }
}
