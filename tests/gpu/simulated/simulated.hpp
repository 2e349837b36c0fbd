// What the parts of the simulated device share. Memory is address space of the host, kernels and library calls do
// nothing and are counted, streams and events are numbers.
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct Counts {
  std::atomic<long> launches{0}, library_calls{0}, waits{0}, to_device{0}, to_host{0}, within_device{0}, allocations{0},
      memsets{0}, graph_launches{0}, used{0}, peak{0};
};
extern Counts counts;

int device_count();
int current_device();
size_t device_memory();  // bytes of each device
bool on_device(const void* p);
void note(const char* name);           // one more of this name, while names are recorded
cudaError_t waited(const char* name);  // the host waits for the device
void called(const char* name);         // one call of a library, which is one launch
void named(const void* kernel, const char* name);
cudaError_t launched(const void* kernel, cudaStream_t stream);
bool added_to_graph();                     // a call of a library, if a stream is captured
bool added_to_graph(cudaStream_t stream);  // a launch, if this stream is captured
cudaError_t unsafe();                      // what must not happen while a stream is captured
cudaError_t allocate(void** p, size_t size);
bool take(int device, size_t bytes);       // of its memory; false: it has no more
void give_back(int device, size_t bytes);
void map_block(void* p, size_t bytes, int device);  // from here on it is the device's
void unmap_block(void* p);

// A call of a library whose arguments do not matter: no declaration of its header is in its way.
#define COUNTED(name)                       \
  EXPORT int simulated_##name() asm(#name); \
  EXPORT int simulated_##name() {           \
    called(#name);                          \
    return 0;                               \
  }
