/* Each clip of sound.bin (int32 samples, then int16 each) twice: in one go to features.bin, in pieces of odd
 * sizes through the model to outputs.bin. */
#include "files.h"
#include "wake_audio.h"

#ifndef CLIP
#define CLIP 8000
#endif

static int16_t clip[CLIP];
static wake_audio audio;
static union {
    uint64_t alignment;
    uint8_t bytes[WAKE_ARENA_BYTES];
} arena;

static void to_features(int32_t samples, int32_t features)
{
    const int16_t *pcm = clip;

    wake_features_reset(&audio);
    while (wake_next_features(&audio, &pcm, &samples) != 0) {
        file_write(features, audio.features, sizeof(audio.features));
    }
}

static int32_t to_outputs(int32_t samples, int32_t outputs)
{
    static const int32_t pieces[] = {1, 333, 160, 0, 7, 1000};
    int32_t taken = 0;

    wake_features_reset(&audio);
#ifdef STATEFUL
    wake_reset(arena.bytes);
#endif
    for (uint32_t i = 0; taken < samples; i++) {
        const int32_t left = samples - taken;
        const int32_t piece = pieces[i % 6];
        const int16_t *pcm = clip + taken;
        int32_t count = piece < left ? piece : left;
        int32_t status;

        taken += count;
        while ((status = wake_push_samples(&audio, arena.bytes, &pcm, &count)) == WAKE_RAN) {
            file_write(outputs, OUTPUT(arena.bytes), OUTPUT_BYTES);
        }
        if (status != WAKE_OK || count != 0 || pcm != clip + taken) {
            return 1;
        }
    }
    return 0;
}

int32_t program(void)
{
    const int32_t sound = file_open("sound.bin", FILE_READ);
    const int32_t features = file_open("features.bin", FILE_WRITE);
    const int32_t outputs = file_open("outputs.bin", FILE_WRITE);
    int32_t samples;

    if (sound < 0 || features < 0 || outputs < 0) {
        return 2;
    }
    while (file_read(sound, &samples, sizeof(samples)) == sizeof(samples)) {
        if (samples > CLIP || file_read(sound, clip, 2 * samples) != 2 * samples) {
            return 3;
        }
        to_features(samples, features);
        if (to_outputs(samples, outputs) != 0) {
            return 4;
        }
    }
    return 0;
}
