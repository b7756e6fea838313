#include "thimble_conv.h"

void thimble_expand_column_s8(const int8_t *input, int32_t words, uint32_t *column)
{
    for (; words >= 2; words -= 2) {
        const uint32_t first = thimble_read_word(input);
        const uint32_t second = thimble_read_word(input + 4);
        column[0] = thimble_sxtb16(first);
        column[1] = thimble_sxtb16_ror8(first);
        column[4] = thimble_sxtb16(second);
        column[5] = thimble_sxtb16_ror8(second);
        input += 8;
        column += 8;
    }
    if (words > 0) {
        const uint32_t first = thimble_read_word(input);
        column[0] = thimble_sxtb16(first);
        column[1] = thimble_sxtb16_ror8(first);
    }
}
