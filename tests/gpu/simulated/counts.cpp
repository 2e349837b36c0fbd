// What happened on the device: counts, and by name while names are recorded.
#include <cxxabi.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "simulated.hpp"

Counts counts;

namespace {
std::atomic<cudaError_t> error{cudaSuccess};
std::mutex lock;
bool recording = false;
// Never destroyed: libraries call after the end of `main`.
auto& kernels = *new std::unordered_map<const void*, std::string>;
auto& recorded = *new std::unordered_map<std::string, long>;

std::string readable(const std::string& name) {
  int status;
  char* found = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string told = found ? found : name;
  free(found);
  return told;
}
}  // namespace

void note(const char* name) {
  if (!recording) return;
  std::lock_guard<std::mutex> guard(lock);
  recorded[name]++;
}

cudaError_t waited(const char* name) {
  counts.waits++;
  note(name);
  if (cudaError_t problem = unsafe()) return problem;
  return error >= cudaErrorIllegalAddress ? error.load() : cudaSuccess;
}

void called(const char* name) {
  if (added_to_graph()) return;
  counts.library_calls++;
  note(name);
}

void named(const void* kernel, const char* name) {
  std::lock_guard<std::mutex> guard(lock);
  kernels.emplace(kernel, name);
}

// The error of SIMULATED_GPU_ERROR, `214` or `214:FILE`: from when that file is there.
static cudaError_t broken() {
  static const char* told = getenv("SIMULATED_GPU_ERROR");
  if (!told) return cudaSuccess;
  static const char* file = strchr(told, ':');
  return file && access(file + 1, F_OK) ? cudaSuccess : cudaError_t(atoi(told));
}

cudaError_t launched(const void* kernel, cudaStream_t stream) {
  if (cudaError_t problem = broken()) return error = problem;
  if (added_to_graph(stream)) return cudaSuccess;
  counts.launches++;
  if (recording) {
    std::lock_guard<std::mutex> guard(lock);
    auto found = kernels.find(kernel);
    recorded[found == kernels.end() ? "unknown kernel" : found->second]++;
  }
  return cudaSuccess;
}

// The last error, taken away unless it has spoiled the context, as from 700 on it has.
cudaError_t last_error() {
  const cudaError_t told = error;
  if (told < cudaErrorIllegalAddress) error = cudaSuccess;
  return told;
}

EXPORT cudaError_t cudaGetLastError() { return last_error(); }
EXPORT cudaError_t cudaPeekAtLastError() { return error; }

// The counts since the start, in the order of simulated_gpu.COUNTS.
EXPORT void simulated_counts(long* out) {
  const long values[] = {counts.launches,       counts.library_calls, counts.waits,       counts.to_device,
                         counts.to_host,        counts.within_device, counts.allocations, counts.memsets,
                         counts.graph_launches, counts.used,          counts.peak};
  memcpy(out, values, sizeof values);
}

EXPORT void simulated_record(int on) {
  std::lock_guard<std::mutex> guard(lock);
  recording = on;
  if (on) recorded.clear();
}

// What was recorded, as lines of count, tab and name, the most first. Returns the bytes needed, with the last zero.
EXPORT size_t simulated_recorded(char* out, size_t room) {
  std::lock_guard<std::mutex> guard(lock);
  std::multimap<long, std::string> by_count;
  for (const auto& [name, count] : recorded) by_count.insert({-count, name});
  std::string text;
  for (const auto& [count, name] : by_count) text += std::to_string(-count) + "\t" + readable(name) + "\n";
  if (text.size() < room) memcpy(out, text.c_str(), text.size() + 1);
  return text.size() + 1;
}
