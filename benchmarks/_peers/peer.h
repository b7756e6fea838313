/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer's engine gives to main.c. */
#ifndef PEER_H
#define PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint8_t *bytes;
    uint32_t count;
} peer_bytes;

/* The model's file, in flash. */
extern const uint8_t peer_model[];

/* Makes the model ready; returns the bytes of arena that it uses. */
uint32_t peer_prepare(void);
uint32_t peer_inputs(void);
uint32_t peer_outputs(void);
peer_bytes peer_input(uint32_t index);
peer_bytes peer_output(uint32_t index);
void peer_run(void);

/* Ends the program with this reason. */
void peer_fail(const char *why);

#ifdef __cplusplus
}
#endif

#endif
