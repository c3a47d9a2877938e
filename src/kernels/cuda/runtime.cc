#include "kernels/cuda/runtime.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <bit>

#include "base/check.h"

namespace octavo::cuda {
namespace {

constexpr int kLeastMajor = 8;  // major compute capability that the kernels need
constexpr int kLeastDriver = 580;  // first version of the driver with CUDA 13

std::atomic<int> chosen_device = 0;

void must(cudaError_t status, const char* what) {
  CHECK(status == cudaSuccess, "CUDA failed to {}: {}", what, cudaGetErrorString(status));
}

}  // namespace

void describe_tiles(const TileSource& source, void* map) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    must(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                          &found),
         "find cuTensorMapEncodeTiled");
    CHECK(found == cudaDriverEntryPointSuccess, "the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(source.columns), static_cast<cuuint64_t>(source.rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(source.stride_bytes)};
  const cuuint32_t tile[] = {64, static_cast<cuuint32_t>(source.tile_rows)}, steps[] = {1, 1};
  const CUresult status =
      encode(static_cast<CUtensorMap*>(map), CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, const_cast<void*>(source.data), extents,
             strides, tile, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(status == CUDA_SUCCESS,
        "the driver refuses a tensor map of {} x {} numbers with a stride of {} bytes", source.rows,
        source.columns, source.stride_bytes);
}

bool kernels_overlap() {
  static const bool can = [] {
    int major = 0;
    must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, chosen_device),
         "read the device's properties");
    return major >= 9;
  }();
  return can;
}
void must_launch(cudaError_t status) { must(status, "launch a kernel"); }

namespace runtime {

Result<DeviceInfo> open(int number) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorStubLibrary)
    return invalid("device",
                   "no NVIDIA driver for CUDA {} is installed on this machine: install version {} or later",
                   CUDART_VERSION / 1000, kLeastDriver);
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    return invalid("device", "this machine has no NVIDIA GPU");
  if (status != cudaSuccess) return invalid("device", "CUDA cannot be used: {}", cudaGetErrorString(status));
  cudaDeviceProp properties;
  chosen_device = number % count;
  enter_device();
  must(cudaGetDeviceProperties(&properties, chosen_device), "read the device's properties");
  if (properties.major < kLeastMajor)
    return invalid("device", "{} has compute capability {}.{}, at least {}.0 is needed", properties.name,
                   properties.major, properties.minor, kLeastMajor);
  return DeviceInfo{properties.name, properties.multiProcessorCount, properties.totalGlobalMem,
                    properties.major == 9 && properties.minor == 0, count};
}

void enter_device() {
  thread_local int entered = -1;
  if (entered == chosen_device) return;
  entered = chosen_device;
  must(cudaSetDevice(entered), "choose the device");
}

std::size_t free_bytes() {
  enter_device();
  std::size_t free = 0, all = 0;
  must(cudaMemGetInfo(&free, &all), "ask for its free memory");
  return free;
}

Result<void*> allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  enter_device();
  void* device = nullptr;
  if (const cudaError_t status = cudaMalloc(&device, bytes); status != cudaSuccess) {
    cudaGetLastError();  // Clears the error of a failed allocation, so that later kernels do not report it.
    return failure(ErrorCode::resource_exhausted, "cannot allocate {} bytes of device memory: {}", bytes,
                   cudaGetErrorString(status));
  }
  must(cudaMemset(device, 0, bytes), "clear memory");
  return device;
}
void release(void* device) { cudaFree(device); }

Result<void*> allocate_pinned(std::size_t bytes) {
  enter_device();
  void* host = nullptr;
  if (const cudaError_t status = cudaMallocHost(&host, bytes); status != cudaSuccess) {
    cudaGetLastError();
    return failure(ErrorCode::resource_exhausted, "cannot allocate {} bytes of pinned memory: {}", bytes,
                   cudaGetErrorString(status));
  }
  return host;
}
void release_pinned(void* host) { cudaFreeHost(host); }

Result<IpcHandle> share(void* device) {
  static_assert(sizeof(IpcHandle) == sizeof(cudaIpcMemHandle_t));
  enter_device();
  cudaIpcMemHandle_t handle;
  if (const cudaError_t status = cudaIpcGetMemHandle(&handle, device); status != cudaSuccess) {
    cudaGetLastError();
    return failure(ErrorCode::unavailable, "CUDA cannot share the GPU's memory with other processes: {}",
                   cudaGetErrorString(status));
  }
  return std::bit_cast<IpcHandle>(handle);
}
Result<void*> open_shared(const IpcHandle& handle) {
  enter_device();
  void* device = nullptr;
  if (const cudaError_t status = cudaIpcOpenMemHandle(&device, std::bit_cast<cudaIpcMemHandle_t>(handle),
                                                      cudaIpcMemLazyEnablePeerAccess);
      status != cudaSuccess) {
    cudaGetLastError();
    return failure(ErrorCode::unavailable, "CUDA cannot open the GPU memory of another process: {}",
                   cudaGetErrorString(status));
  }
  return device;
}
void close_shared(void* device) { cudaIpcCloseMemHandle(device); }

StreamHandle make_stream() {
  enter_device();
  cudaStream_t stream = nullptr;
  must(cudaStreamCreate(&stream),
       "make a stream");  // Waits until the default stream has cleared the memory.
  return stream;
}
void destroy_stream(StreamHandle stream) { cudaStreamDestroy(stream); }
void synchronize(StreamHandle stream) { must(cudaStreamSynchronize(stream), "run"); }
void copy_to_device(StreamHandle stream, void* device, const void* host, std::size_t bytes) {
  must(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream), "copy to the device");
}
void copy_to_host(StreamHandle stream, void* host, const void* device, std::size_t bytes) {
  must(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream), "copy from the device");
}
void copy_on_device(StreamHandle stream, void* to, const void* from, std::size_t bytes) {
  must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy on the device");
}

void clear(StreamHandle stream, void* device, std::size_t bytes) {
  must(cudaMemsetAsync(device, 0, bytes, stream), "clear memory");
}

void copy_at_once(void* to, const void* from, std::size_t bytes) {
  enter_device();
  must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread), "copy a KV block");
  must(cudaStreamSynchronize(cudaStreamPerThread), "copy a KV block");
}

void call_host(StreamHandle stream, void (*run)(void* data), void* data) {
  must(cudaLaunchHostFunc(stream, run, data), "enqueue a function of the host");
}

EventHandle make_event() {
  enter_device();
  cudaEvent_t event = nullptr;
  must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
  return event;
}
void destroy_event(EventHandle event) { cudaEventDestroy(event); }
void record_event(StreamHandle stream, EventHandle event) {
  must(cudaEventRecord(event, stream), "record an event");
}
void wait_for(EventHandle event) { must(cudaEventSynchronize(event), "run"); }

void begin_graph(StreamHandle stream) {
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin a graph");
}
GraphHandle end_graph(StreamHandle stream) {
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph), "end a graph");
  cudaGraphExec_t executable = nullptr;
  must(cudaGraphInstantiate(&executable, graph, 0), "make a graph ready");
  must(cudaGraphDestroy(graph), "destroy a graph");
  return executable;
}
void launch_graph(StreamHandle stream, GraphHandle graph) {
  must(cudaGraphLaunch(graph, stream), "launch a graph");
}
void destroy_graph(GraphHandle graph) { cudaGraphExecDestroy(graph); }

}  // namespace runtime
}  // namespace octavo::cuda
