// CUDA graphs: while a stream is captured its launches become nodes. Replayed, a graph is one launch. A wait for the
// device, or an allocation that is not meant for the capture, ends it with an error, as it does on a device.
#include "simulated.hpp"

namespace {
struct Graph {
  size_t nodes;
};
std::atomic<cudaStream_t> captured{nullptr};
std::atomic<bool> broken{false};
std::atomic<long> id{0}, nodes{0};
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

cudaStreamCaptureStatus status(cudaStream_t stream) {
  if (!captured || stream != captured) return cudaStreamCaptureStatusNone;
  return broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}
}  // namespace

bool added_to_graph(cudaStream_t stream) {
  if (!captured || stream != captured) return false;
  nodes++;
  return true;
}

bool added_to_graph() { return added_to_graph(captured); }

cudaError_t unsafe() {
  if (!captured || mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || captured) return cudaErrorStreamCaptureUnsupported;
  captured = stream;
  broken = false;
  nodes = 0;
  id++;
  return cudaSuccess;
}
EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (status(stream) == cudaStreamCaptureStatusNone) return cudaErrorIllegalState;
  captured = nullptr;
  *graph = broken ? nullptr : (cudaGraph_t) new Graph{size_t(nodes.load())};
  return broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}
EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* told) {
  *told = status(stream);
  return cudaSuccess;
}
EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* told,
                                            unsigned long long* told_id, cudaGraph_t*, const cudaGraphNode_t**,
                                            const cudaGraphEdgeData**, size_t*) {
  *told = status(stream);
  if (told_id) *told_id = id;
  return cudaSuccess;
}
EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* wanted) {
  const cudaStreamCaptureMode before = mode;
  mode = *wanted;
  *wanted = before;
  return cudaSuccess;
}
EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = ((Graph*)graph)->nodes;
  return cudaSuccess;
}
EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = (cudaGraphExec_t) new Graph(*(Graph*)graph);
  return cudaSuccess;
}
EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(made, graph, flags);
}
EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  counts.graph_launches++;
  note("graph");
  return cudaSuccess;
}
EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete (Graph*)graph;
  return cudaSuccess;
}
EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete (Graph*)graph;
  return cudaSuccess;
}
EXPORT cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned) { return cudaSuccess; }
EXPORT cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void*, cudaHostFn_t, unsigned, unsigned) {
  *object = (cudaUserObject_t)8;
  return cudaSuccess;
}
EXPORT cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned) { return cudaSuccess; }
EXPORT cudaError_t cudaDeviceGraphMemTrim(int) { return cudaSuccess; }
