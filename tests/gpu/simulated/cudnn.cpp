// cuDNN 9: descriptors are zeros, a workspace is 1 MiB, calls are counted.
#include <cudnn.h>

#include "simulated.hpp"

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* h) {
  *h = (cudnnHandle_t)0x55;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
// Where `cudnn.benchmark` asks for it, to time its algorithms.
static cudaStream_t last_stream = nullptr;
EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  last_stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) {
  *stream = last_stream;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT size_t cudnnGetVersion() { return 92600; }
EXPORT size_t cudnnGetCudartVersion() { return 13020; }
template <class T>
static cudnnStatus_t make(T* d) {
  *d = (T)calloc(1, 1024);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) { return make(d); }
EXPORT cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) {
  free(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t, cudnnDataType_t, int, const int*, const int*) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* d) { return make(d); }
EXPORT cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) {
  free(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t, cudnnDataType_t, cudnnTensorFormat_t, int,
                                                const int*) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* d) { return make(d); }
EXPORT cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) {
  free(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t, int, const int*, const int*,
                                                     const int*, cudnnConvolutionMode_t, cudnnDataType_t) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t, int) { return CUDNN_STATUS_SUCCESS; }
EXPORT cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                            const cudnnFilterDescriptor_t,
                                                            const cudnnConvolutionDescriptor_t,
                                                            const cudnnTensorDescriptor_t, const int, int* n,
                                                            cudnnConvolutionFwdAlgoPerf_t* r) {
  *n = 1;
  memset(r, 0, sizeof *r);
  r->algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t,
                                                                 const cudnnTensorDescriptor_t,
                                                                 const cudnnConvolutionDescriptor_t,
                                                                 const cudnnTensorDescriptor_t, const int, int* n,
                                                                 cudnnConvolutionBwdDataAlgoPerf_t* r) {
  *n = 1;
  memset(r, 0, sizeof *r);
  r->algo = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                                   const cudnnTensorDescriptor_t,
                                                                   const cudnnConvolutionDescriptor_t,
                                                                   const cudnnFilterDescriptor_t, const int, int* n,
                                                                   cudnnConvolutionBwdFilterAlgoPerf_t* r) {
  *n = 1;
  memset(r, 0, sizeof *r);
  r->algo = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  return CUDNN_STATUS_SUCCESS;
}
#define WORK(name)                                                                           \
  EXPORT int simulated_##name(void*, void*, void*, void*, void*, int, size_t* n) asm(#name); \
  EXPORT int simulated_##name(void*, void*, void*, void*, void*, int, size_t* n) {           \
    *n = 1 << 20;                                                                            \
    return 0;                                                                                \
  }
#undef cudnnGetConvolutionForwardWorkspaceSize
#undef cudnnGetConvolutionBackwardDataWorkspaceSize
#undef cudnnGetConvolutionBackwardFilterWorkspaceSize
WORK(cudnnGetConvolutionForwardWorkspaceSize)
WORK(cudnnGetConvolutionBackwardDataWorkspaceSize)
WORK(cudnnGetConvolutionBackwardFilterWorkspaceSize)
EXPORT int simulated_bn1(void*, int, int, void*, void*, void*, void*, void*,
                         size_t* n) asm("cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize");
EXPORT int simulated_bn1(void*, int, int, void*, void*, void*, void*, void*, size_t* n) {
  *n = 0;
  return 0;
}
EXPORT int simulated_bn2(void*, int, int, void*, void*, void*, void*, void*, void*, void*,
                         size_t* n) asm("cudnnGetBatchNormalizationBackwardExWorkspaceSize");
EXPORT int simulated_bn2(void*, int, int, void*, void*, void*, void*, void*, void*, void*, size_t* n) {
  *n = 0;
  return 0;
}
EXPORT int simulated_bn3(void*, int, int, void*, void*,
                         size_t* n) asm("cudnnGetBatchNormalizationTrainingExReserveSpaceSize");
EXPORT int simulated_bn3(void*, int, int, void*, void*, size_t* n) {
  *n = 1024;
  return 0;
}
COUNTED(cudnnConvolutionForward)
COUNTED(cudnnConvolutionBackwardData)
COUNTED(cudnnConvolutionBackwardFilter)
COUNTED(cudnnBatchNormalizationForwardTrainingEx)
COUNTED(cudnnBatchNormalizationBackwardEx)
COUNTED(cudnnBatchNormalizationForwardInference)
COUNTED(cudnnPoolingForward)

// Graphs of operations.
EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t* d) {
  *d = (cudnnBackendDescriptor_t)calloc(1, 256);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  free(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                              cudnnBackendAttributeType_t, int64_t, const void*) {
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const, cudnnBackendAttributeName_t a,
                                              cudnnBackendAttributeType_t, int64_t asked, int64_t* n, void* out) {
  int64_t many = 0;
  if (a == CUDNN_ATTR_ENGINEHEUR_RESULTS || a == CUDNN_ATTR_ENGINECFG_ENGINE)
    many = 1;
  else if (a == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || a == CUDNN_ATTR_ENGINE_GLOBAL_INDEX ||
           a == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT) {
    many = 1;
    if (out) *(int64_t*)out = a == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE ? 1 << 20 : 1;
  }
  if (n) *n = many;
  return CUDNN_STATUS_SUCCESS;
}
COUNTED(cudnnBackendExecute)
