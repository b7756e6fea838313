/* What runtime_tflite.c asks of an interpreter, for fresh.c: declared here anew, for tests without its
 * headers. */
#ifndef FRESH_C_API_H
#define FRESH_C_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct TfLiteModel TfLiteModel;
typedef struct TfLiteInterpreterOptions TfLiteInterpreterOptions;
typedef struct TfLiteInterpreter TfLiteInterpreter;
typedef struct TfLiteTensor TfLiteTensor;
typedef struct TfLiteDelegate TfLiteDelegate;
typedef enum { kTfLiteOk = 0, kTfLiteError = 1 } TfLiteStatus;

TfLiteModel *TfLiteModelCreateFromFile(const char *path);
void TfLiteModelDelete(TfLiteModel *model);
TfLiteInterpreterOptions *TfLiteInterpreterOptionsCreate(void);
void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions *options);
void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions *options, int32_t threads);
void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions *options, TfLiteDelegate *delegate);
TfLiteInterpreter *TfLiteInterpreterCreate(const TfLiteModel *model, const TfLiteInterpreterOptions *options);
void TfLiteInterpreterDelete(TfLiteInterpreter *interpreter);
TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter *interpreter);
TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter *interpreter);
int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter *interpreter);
int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter *interpreter);
TfLiteTensor *TfLiteInterpreterGetInputTensor(const TfLiteInterpreter *interpreter, int32_t index);
const TfLiteTensor *TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter *interpreter, int32_t index);
const char *TfLiteTensorName(const TfLiteTensor *tensor);
size_t TfLiteTensorByteSize(const TfLiteTensor *tensor);
TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor *tensor, const void *from, size_t bytes);
TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor *tensor, void *to, size_t bytes);

#endif
