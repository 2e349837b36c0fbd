// Memory: address space without pages until something is copied to it. What other processes hold is not seen.
#include <sys/mman.h>

#include <map>
#include <mutex>

#include "simulated.hpp"

namespace {
std::mutex lock;
struct Block {
  size_t bytes;
  int device;
};
auto& blocks = *new std::map<char*, Block>;  // never destroyed: libraries free after the end of `main`
auto& used = *new std::map<int, size_t>;     // bytes of each device
constexpr size_t PAGE = 4096, COPIED = 1 << 20;

size_t whole_pages(size_t size) { return (size + PAGE - 1) & ~(PAGE - 1); }

cudaError_t copy(void* to, const void* from, size_t size) {
  const bool to_device = on_device(to), from_device = on_device(from);
  if (to_device && from_device) {
    counts.within_device++;
    note("copy within the device");
  } else if (to_device) {
    counts.to_device++;
    note("copy to the device");
  } else if (from_device) {
    counts.to_host++;
    note("copy to the host");
  }
  // A large copy to the device would take pages of the host, and nothing reads it.
  if (!to_device || size <= COPIED) memmove(to, from, size);
  return cudaSuccess;
}

cudaError_t fill(void* p, int value, size_t size) {
  counts.memsets++;
  note("memset");
  if (size <= COPIED) memset(p, value, size);
  return cudaSuccess;
}
}  // namespace

bool on_device(const void* p) {
  std::lock_guard<std::mutex> guard(lock);
  auto block = blocks.upper_bound((char*)p);
  if (block == blocks.begin()) return false;
  --block;
  return (char*)p < block->first + block->second.bytes;
}

bool take(int device, size_t bytes) {
  std::lock_guard<std::mutex> guard(lock);
  if (used[device] + bytes > device_memory()) return false;
  used[device] += bytes;
  counts.used += bytes;
  if (counts.used > counts.peak) counts.peak = counts.used.load();
  return true;
}

void give_back(int device, size_t bytes) {
  std::lock_guard<std::mutex> guard(lock);
  used[device] -= bytes;
  counts.used -= bytes;
}

void map_block(void* p, size_t bytes, int device) {
  std::lock_guard<std::mutex> guard(lock);
  blocks[(char*)p] = {bytes, device};
}

void unmap_block(void* p) {
  std::lock_guard<std::mutex> guard(lock);
  blocks.erase((char*)p);
}

cudaError_t allocate(void** p, size_t size) {
  if (cudaError_t problem = unsafe()) return problem;
  counts.allocations++;
  const size_t bytes = whole_pages(size ? size : 1);
  *p = nullptr;
  const int device = current_device();
  if (!take(device, bytes)) return cudaErrorMemoryAllocation;
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return cudaErrorMemoryAllocation;
  map_block(made, bytes, device);
  *p = made;
  return cudaSuccess;
}

EXPORT cudaError_t cudaMalloc(void** p, size_t size) { return allocate(p, size); }
EXPORT cudaError_t cudaMallocAsync(void** p, size_t size, cudaStream_t) { return allocate(p, size); }
EXPORT cudaError_t cudaMallocManaged(void** p, size_t size, unsigned) { return allocate(p, size); }
EXPORT cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  std::lock_guard<std::mutex> guard(lock);
  auto block = blocks.find((char*)p);
  if (block == blocks.end()) return cudaErrorInvalidValue;
  munmap(p, block->second.bytes);
  used[block->second.device] -= block->second.bytes;
  counts.used -= block->second.bytes;
  blocks.erase(block);
  return cudaSuccess;
}
EXPORT cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }
EXPORT cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  std::lock_guard<std::mutex> guard(lock);
  *total = device_memory();
  *free = *total - used[current_device()];
  return cudaSuccess;
}
EXPORT cudaError_t cudaHostAlloc(void** p, size_t size, unsigned) {
  *p = aligned_alloc(PAGE, whole_pages(size));
  return cudaSuccess;
}
EXPORT cudaError_t cudaMallocHost(void** p, size_t size) { return cudaHostAlloc(p, size, 0); }
EXPORT cudaError_t cudaFreeHost(void* p) {
  free(p);
  return cudaSuccess;
}
EXPORT cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
EXPORT cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

EXPORT cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  const cudaError_t error = waited("cudaMemcpy");
  return error ? error : copy(to, from, size);
}
EXPORT cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind, cudaStream_t) {
  return copy(to, from, size);
}
EXPORT cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, cudaStream_t) {
  return copy(to, from, size);
}
EXPORT cudaError_t cudaMemcpy2DAsync(void*, size_t, const void*, size_t, size_t, size_t, cudaMemcpyKind, cudaStream_t) {
  counts.within_device++;
  return cudaSuccess;
}
EXPORT cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) { return cudaSuccess; }
EXPORT cudaError_t cudaGetSymbolAddress(void** p, const void*) {
  static void* symbols = [] {
    void* made;
    allocate(&made, 1 << 20);
    return made;
  }();
  *p = symbols;
  return cudaSuccess;
}
EXPORT cudaError_t cudaMemset(void* p, int value, size_t size) { return fill(p, value, size); }
EXPORT cudaError_t cudaMemsetAsync(void* p, int value, size_t size, cudaStream_t) { return fill(p, value, size); }
EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  memset(a, 0, sizeof *a);
  a->type = on_device(p) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  a->devicePointer = (void*)p;
  return cudaSuccess;
}
