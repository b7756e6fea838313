/* Each frame of frames.bin to the input, and that to inputs.bin. Then its rows, one by one, from the last. */
#include "files.h"
#include "net_image.h"

static uint8_t frame[NET_IMAGE_BYTES];
static int8_t row[NET_IMAGE_ROW_BYTES];
static union {
    uint64_t alignment;
    uint8_t bytes[NET_ARENA_BYTES];
} arena;

int32_t program(void)
{
    const int32_t frames = file_open("frames.bin", FILE_READ);
    const int32_t inputs = file_open("inputs.bin", FILE_WRITE);
    const int32_t rows = file_open("rows.bin", FILE_WRITE);

    if (frames < 0 || inputs < 0 || rows < 0) {
        return 2;
    }
    while (file_read(frames, frame, sizeof(frame)) == sizeof(frame)) {
        net_put_image(arena.bytes, frame);
        file_write(inputs, net_input_x(arena.bytes), NET_INPUT_X_BYTES);
        if (net_run(arena.bytes) != NET_OK) {
            return 3;
        }
        for (int32_t i = NET_IMAGE_ROWS - 1; i >= 0; i--) {
            net_image_row(frame, i, row);
            file_write(rows, row, sizeof(row));
        }
    }
    return 0;
}
