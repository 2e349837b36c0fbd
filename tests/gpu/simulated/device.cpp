// Devices: how many, what they are, versions.
#include <string>

#include "simulated.hpp"

namespace {
thread_local int current = 0;

struct Card {
  std::string name = "NVIDIA H100 80GB HBM3 (simulated)";
  int major = 9, minor = 0;
};

const Card& card() {
  static const Card one = [] {
    Card made;
    if (const char* name = getenv("SIMULATED_GPU_NAME")) made.name = name;
    if (const char* text = getenv("SIMULATED_GPU_CAPABILITY")) sscanf(text, "%d.%d", &made.major, &made.minor);
    return made;
  }();
  return one;
}

int attribute(int which) {
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
    case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 49152;
    case cudaDevAttrWarpSize:
    case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
    case cudaDevAttrMultiProcessorCount: return 132;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
    case cudaDevAttrComputeCapabilityMajor: return card().major;
    case cudaDevAttrComputeCapabilityMinor: return card().minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 233472;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return 232448;
    default: return 0;
  }
}
}  // namespace

int current_device() { return current; }

// The first numbers of CUDA_VISIBLE_DEVICES that are devices, as the driver counts them.
int device_count() {
  const char* asked = getenv("SIMULATED_GPUS");
  const int all = asked ? atoi(asked) : 1;
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return all;
  int count = 0;
  std::string rest = visible;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string one = rest.substr(0, comma);
    if (one.empty() || !isdigit(one[0]) || atoi(one.c_str()) >= all) break;
    count++;
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return count;
}

size_t device_memory() {
  static const size_t bytes = [] {
    const char* asked = getenv("SIMULATED_GPU_MIB");
    return size_t(asked ? strtoull(asked, nullptr, 10) : 81559) << 20;
  }();
  return bytes;
}

EXPORT cudaError_t cudaGetDeviceCount(int* n) {
  *n = device_count();
  return *n ? cudaSuccess : cudaErrorNoDevice;
}
EXPORT cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
EXPORT cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}
EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  memset(p, 0, sizeof *p);
  strncpy(p->name, card().name.c_str(), sizeof p->name - 1);
  p->major = card().major;
  p->minor = card().minor;
  p->totalGlobalMem = device_memory();
  p->multiProcessorCount = 132;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxBlocksPerMultiProcessor = 32;
  p->sharedMemPerBlock = 49152;
  p->sharedMemPerBlockOptin = 232448;
  p->sharedMemPerMultiprocessor = 233472;
  p->reservedSharedMemPerBlock = 1024;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->l2CacheSize = 50 << 20;
  p->totalConstMem = 65536;
  p->textureAlignment = 512;
  p->memPitch = 2147483647;
  p->unifiedAddressing = p->managedMemory = p->concurrentKernels = 1;
  p->pciBusID = device + 1;
  p->memoryBusWidth = 5120;
  return cudaSuccess;
}
EXPORT cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = attribute(which);
  return cudaSuccess;
}
EXPORT cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13020;
  return cudaSuccess;
}
EXPORT cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13020;
  return cudaSuccess;
}
EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
EXPORT cudaError_t cudaDeviceSynchronize() { return waited("cudaDeviceSynchronize"); }
EXPORT cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
EXPORT cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
EXPORT cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  snprintf(text, size, "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
EXPORT cudaError_t cudaProfilerStart() { return cudaSuccess; }
EXPORT cudaError_t cudaProfilerStop() { return cudaSuccess; }

// The driver's own interface, as far as PyTorch asks for it.
EXPORT CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGet(CUdevice* device, int n) {
  *device = n;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = (CUcontext)1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = (CUcontext)1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
EXPORT CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "an error of the simulated driver";
  return CUDA_SUCCESS;
}

// Not simulated: whoever calls one is told.
#define ABSENT(name)                                     \
  EXPORT int simulated_##name() asm(#name);              \
  EXPORT int simulated_##name() {                        \
    fprintf(stderr, "simulated device: no " #name "\n"); \
    return CUDA_ERROR_NOT_SUPPORTED;                     \
  }
ABSENT(cuFuncGetAttribute)
ABSENT(cuFuncSetAttribute)
ABSENT(cuFuncSetCacheConfig)
ABSENT(cuLaunchCooperativeKernel)
ABSENT(cuLaunchKernel)
ABSENT(cuLinkAddData_v2)
ABSENT(cuLinkComplete)
ABSENT(cuLinkCreate_v2)
ABSENT(cuModuleGetFunction)
ABSENT(cuModuleLoad)
ABSENT(cuModuleLoadData)
ABSENT(cuModuleLoadDataEx)
ABSENT(cuModuleUnload)
ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
ABSENT(cuPointerGetAttribute)
ABSENT(cuTensorMapEncodeTiled)
