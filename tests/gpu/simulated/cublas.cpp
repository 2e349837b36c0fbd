// cuBLAS and cuBLASLt: handles are numbers, descriptors are zeros, calls are counted.
#include <cublasLt.h>
#include <cublas_v2.h>

#include "simulated.hpp"

EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t* h) {
  *h = (cublasHandle_t)0x77;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
EXPORT cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
EXPORT cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* m) {
  *m = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
EXPORT cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, cublasPointerMode_t* m) {
  *m = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasSetSmCountTarget(cublasHandle_t, int) { return CUBLAS_STATUS_SUCCESS; }

#undef cublasSgemm_v2
#undef cublasDgemm_v2
#undef cublasGemmEx
#undef cublasSgemmEx
#undef cublasGemmStridedBatchedEx
#undef cublasSgemmStridedBatched
#undef cublasDgemmStridedBatched
#undef cublasSgemv_v2
#undef cublasDgemv_v2
#undef cublasSdot_v2
#undef cublasDdot_v2
#undef cublasDotEx
#undef cublasStrsm_v2
#undef cublasDtrsm_v2
#undef cublasStrsmBatched
#undef cublasDtrsmBatched
#undef cublasSgetrfBatched
#undef cublasDgetrfBatched
#undef cublasSgetrsBatched
#undef cublasDgetrsBatched
#undef cublasLtMatmul
COUNTED(cublasSgemm_v2)
COUNTED(cublasDgemm_v2)
COUNTED(cublasGemmEx)
COUNTED(cublasSgemmEx)
COUNTED(cublasGemmStridedBatchedEx)
COUNTED(cublasSgemmStridedBatched)
COUNTED(cublasDgemmStridedBatched)
COUNTED(cublasSgemv_v2)
COUNTED(cublasDgemv_v2)
COUNTED(cublasSdot_v2)
COUNTED(cublasDdot_v2)
COUNTED(cublasDotEx)
COUNTED(cublasStrsm_v2)
COUNTED(cublasDtrsm_v2)
COUNTED(cublasStrsmBatched)
COUNTED(cublasDtrsmBatched)
COUNTED(cublasSgetrfBatched)
COUNTED(cublasDgetrfBatched)
COUNTED(cublasSgetrsBatched)
COUNTED(cublasDgetrsBatched)
COUNTED(cublasLtMatmul)
EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int n,
                                                     cublasLtMatmulHeuristicResult_t* r, int* k) {
  memset(r, 0, sizeof *r * n);
  *k = 1;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT size_t cublasLtGetVersion() { return 130401; }
EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t, cudaDataType_t) {
  *d = (cublasLtMatmulDesc_t)calloc(1, 512);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  free(d);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
                                                     size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* d) {
  *d = (cublasLtMatmulPreference_t)calloc(1, 512);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t d) {
  free(d);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                           cublasLtMatmulPreferenceAttributes_t, const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* d, cudaDataType, uint64_t, uint64_t, int64_t) {
  *d = (cublasLtMatrixLayout_t)calloc(1, 512);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t d) {
  free(d);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
                                                       const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
