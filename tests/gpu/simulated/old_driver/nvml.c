// An NVML that names one card, as a driver has it that is too old for the wheels of PyTorch.
#include <string.h>

int nvmlInit(void) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount(unsigned* n) {
  *n = 1;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* n) { return nvmlDeviceGetCount(n); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = (void*)8;
  return 0;
}
int nvmlDeviceGetName(void* handle, char* name, unsigned size) {
  strncpy(name, "NVIDIA A100-SXM4-40GB", size);
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  strncpy(version, "550.54.15", size);
  return 0;
}
const char* nvmlErrorString(int error) { return "an error of the simulated NVML"; }
