// The functions of the CUDA runtime that the backend calls, so that host code builds and runs without CUDA.
// runtime.cc implements them on CUDA, and emulator/runtime.cc for tests.
//
// Functions that return void end the process with CUDA's error text if CUDA fails, because errors of a
// running device cannot be handled.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/error.h"
#include "kernels/cuda/kernels.h"

struct CUevent_st;
struct CUgraphExec_st;

namespace octavo::cuda::runtime {

using IpcHandle = std::array<std::byte, 64>;
using EventHandle = CUevent_st*;
using GraphHandle = CUgraphExec_st*;

struct DeviceInfo {
  std::string name;
  int processors = 0;
  std::size_t memory_bytes = 0;
  bool wgmma = false;  // whether the device supports wgmma (Hopper)
  int devices_of_host = 1;
};

// Initialises device `number`, modulo the number of devices in CUDA_VISIBLE_DEVICES. All later calls of the
// process use this device. Returns a one-line error if there is no driver or no device, or if the device is
// too old.
Result<DeviceInfo> open(int number);
// Selects the process's device for the calling thread, because CUDA begins each thread with device 0. Must be
// called before a launch; the other functions call it themselves.
void enter_device();
std::size_t free_bytes();

Result<void*> allocate(std::size_t bytes);  // zeroed memory; nullptr if bytes is 0
void release(void* device);
// Pinned host memory, for which copies are asynchronous.
Result<void*> allocate_pinned(std::size_t bytes);
void release_pinned(void* host);

// Memory of allocate() that other processes of this host open. Only copy_at_once() accesses opened memory.
Result<IpcHandle> share(void* device);
Result<void*> open_shared(const IpcHandle& handle);
void close_shared(void* device);

StreamHandle make_stream();
void destroy_stream(StreamHandle stream);
void synchronize(StreamHandle stream);
// The caller may reuse `host` when the stream has finished the copy.
void copy_to_device(StreamHandle stream, void* device, const void* host, std::size_t bytes);
void copy_to_host(StreamHandle stream, void* host, const void* device, std::size_t bytes);
void copy_on_device(StreamHandle stream, void* to, const void* from, std::size_t bytes);
void clear(StreamHandle stream, void* device, std::size_t bytes);

// Copies between host and device outside of all streams; returns after the copy. Thread-safe.
void copy_at_once(void* to, const void* from, std::size_t bytes);

// Enqueues a call of run(data) on a thread of the host. The function must not call CUDA. A captured call runs
// each time that the graph runs.
void call_host(StreamHandle stream, void (*run)(void* data), void* data);

// A position in a stream. Recording an event again overwrites it. Any thread may wait for an event.
EventHandle make_event();
void destroy_event(EventHandle event);
void record_event(StreamHandle stream, EventHandle event);
void wait_for(EventHandle event);

// Starts the capture of a CUDA graph. Until end_graph(), launches on the stream are captured and do not
// run. During the capture, memory must not be allocated or copied, and no thread may wait for the stream.
void begin_graph(StreamHandle stream);
GraphHandle end_graph(StreamHandle stream);
void launch_graph(StreamHandle stream, GraphHandle graph);
void destroy_graph(GraphHandle graph);

}  // namespace octavo::cuda::runtime
