// cuSOLVER: calls are counted.
#include <cstdint>

#include "simulated.hpp"

EXPORT int cusolverDnCreate(void** h) {
  *h = (void*)0x33;
  return 0;
}
EXPORT int cusolverDnDestroy(void*) { return 0; }
EXPORT int cusolverDnSetStream(void*, void*) { return 0; }
EXPORT int cusolverDnCreateParams(void** p) {
  *p = (void*)0x34;
  return 0;
}
EXPORT int cusolverDnDestroyParams(void*) { return 0; }
EXPORT int cusolverDnDgetrf_bufferSize(void*, int, int, double*, int, int* n) {
  *n = 1024;
  return 0;
}
EXPORT int cusolverDnSgetrf_bufferSize(void*, int, int, float*, int, int* n) {
  *n = 1024;
  return 0;
}
EXPORT int cusolverDnDpotrf_bufferSize(void*, int, int, double*, int, int* n) {
  *n = 1024;
  return 0;
}
EXPORT int cusolverDnSpotrf_bufferSize(void*, int, int, float*, int, int* n) {
  *n = 1024;
  return 0;
}
EXPORT int cusolverDnXpotrf_bufferSize(void*, void*, int, int64_t, int, const void*, int64_t, int, size_t* a,
                                       size_t* b) {
  *a = 1024;
  *b = 0;
  return 0;
}
COUNTED(cusolverDnDgetrf)
COUNTED(cusolverDnSgetrf)
COUNTED(cusolverDnDgetrs)
COUNTED(cusolverDnSgetrs)
COUNTED(cusolverDnDpotrf)
COUNTED(cusolverDnSpotrf)
COUNTED(cusolverDnXpotrf)
COUNTED(cusolverDnDpotrs)
COUNTED(cusolverDnSpotrs)
