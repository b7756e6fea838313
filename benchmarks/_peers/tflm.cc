// SPDX-License-Identifier: Apache-2.0
// TensorFlow Lite Micro's interpreter as a peer. PEER_OPERATORS adds the operators that the model has.
#include "peer.h"

#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {
alignas(16) uint8_t arena[PEER_ARENA_BYTES];
tflite::MicroInterpreter *interpreter;

peer_bytes bytes_of(TfLiteTensor *tensor)
{
    return {tensor->data.uint8, static_cast<uint32_t>(tensor->bytes)};
}
} // namespace

uint32_t peer_prepare(void)
{
    static tflite::MicroMutableOpResolver<32> resolver;
    PEER_OPERATORS
    static tflite::MicroInterpreter only(tflite::GetModel(peer_model), resolver, arena, sizeof arena);
    interpreter = &only;
    if (only.AllocateTensors() != kTfLiteOk) {
        peer_fail("AllocateTensors");
    }
    return static_cast<uint32_t>(only.arena_used_bytes());
}

uint32_t peer_inputs(void)
{
    return static_cast<uint32_t>(interpreter->inputs_size());
}

uint32_t peer_outputs(void)
{
    return static_cast<uint32_t>(interpreter->outputs_size());
}

peer_bytes peer_input(uint32_t index)
{
    return bytes_of(interpreter->input(index));
}

peer_bytes peer_output(uint32_t index)
{
    return bytes_of(interpreter->output(index));
}

void peer_run(void)
{
    if (interpreter->Invoke() != kTfLiteOk) {
        peer_fail("Invoke");
    }
}
