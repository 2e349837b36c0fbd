// Memory that is mapped piece by piece into reserved addresses: what PyTorch's expandable segments ask the driver for.
// A piece counts as used from when it is made to when it is released; only its size is simulated.
#include <dlfcn.h>
#include <sys/mman.h>

#include "simulated.hpp"

namespace {
constexpr size_t PIECE = 2 << 20;
struct Piece {
  size_t bytes;
  int device;
};
}  // namespace

EXPORT CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                              CUmemAllocationGranularity_flags) {
  *bytes = PIECE;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAddressReserve(CUdeviceptr* at, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  // Aligned as a piece is: PyTorch takes that for granted.
  char* made = (char*)mmap(nullptr, bytes + PIECE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  char* aligned = (char*)(((size_t)made + PIECE - 1) / PIECE * PIECE);
  if (aligned > made) munmap(made, aligned - made);
  munmap(aligned + bytes, made + PIECE - aligned);
  *at = (CUdeviceptr)aligned;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) {
  munmap((void*)at, bytes);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* of,
                            unsigned long long) {
  const int device = of->location.id;
  if (!take(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = (CUmemGenericAllocationHandle) new Piece{bytes, device};
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Piece* piece = (Piece*)handle;
  give_back(piece->device, piece->bytes);
  delete piece;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                         unsigned long long) {
  map_block((void*)at, bytes, ((Piece*)handle)->device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  unmap_block((void*)at);
  madvise((void*)at, bytes, MADV_DONTNEED);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = which == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
  return CUDA_SUCCESS;
}

#define NEVER(name)                                                     \
  EXPORT int simulated_##name() asm(#name);                             \
  EXPORT int simulated_##name() { return CUDA_ERROR_NOT_SUPPORTED; }
NEVER(cuMemGetAddressRange)
NEVER(cuMemExportToShareableHandle)
NEVER(cuMemImportFromShareableHandle)
NEVER(cuMemRetainAllocationHandle)
NEVER(cuMemGetAllocationPropertiesFromHandle)
NEVER(cuMemsetD32Async)
NEVER(cuStreamWriteValue32)

// How PyTorch finds them: all that is simulated, and nothing else.
EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** at, unsigned, unsigned long long,
                                                    cudaDriverEntryPointQueryResult* result) {
  *at = dlsym(RTLD_DEFAULT, name);
  if (result) *result = *at ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
