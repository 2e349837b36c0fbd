// A driver of CUDA 12.4: the runtime of CUDA 13 refuses it as too old.
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuInit(unsigned flags) { return 0; }
int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, void* status) {
  *function = 0;
  return 500;  // CUDA_ERROR_NOT_FOUND
}
