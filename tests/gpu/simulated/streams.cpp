// Streams and events: numbers and times. What a stream is given has happened when the call returns.
#include <chrono>

#include "simulated.hpp"

namespace {
std::atomic<long> last_stream{0x1000};

struct Event {
  double at = 0;  // milliseconds
};

double milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

EXPORT cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = (cudaStream_t)(last_stream += 16);
  return cudaSuccess;
}
EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
EXPORT cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
EXPORT cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t) { return waited("cudaStreamSynchronize"); }
EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return cudaSuccess;
}
EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = (cudaEvent_t) new Event;
  return cudaSuccess;
}
EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete (Event*)event;
  return cudaSuccess;
}
EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  ((Event*)event)->at = milliseconds();
  return cudaSuccess;
}
EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
EXPORT cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t) { return waited("cudaEventSynchronize"); }
EXPORT cudaError_t cudaEventElapsedTime(float* elapsed, cudaEvent_t from, cudaEvent_t to) {
  *elapsed = ((Event*)to)->at - ((Event*)from)->at;
  return cudaSuccess;
}
