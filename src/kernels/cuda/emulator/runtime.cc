#include "kernels/cuda/runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/cuda/emulator/language.h"
#include "kernels/cuda/emulator/memory.h"

using Work = std::function<void()>;

struct CUgraphExec_st {
  std::vector<Work> works;
};

// A CUDA stream. Only one thread may add work; any thread may wait for its events.
struct CUstream_st {
  std::recursive_mutex mutex;  // protects the queue and the counters
  std::deque<Work> queue;
  std::uint64_t enqueued = 0, done = 0;
  CUgraphExec_st* graph = nullptr;
  std::thread::id recorder;

  void run_until(std::uint64_t position) {
    const std::lock_guard lock(mutex);
    CHECK(graph == nullptr || recorder != std::this_thread::get_id(), "waiting in a graph");
    if (done >= position) return;
    // One object for all pieces of work, because creating such an object needs system calls.
    const octavo::cuda::emulated::DeviceMemoryAccess access;
    while (done < position) {
      const Work work = std::move(queue.front());
      queue.pop_front();
      ++done;
      work();
    }
  }
};

struct CUevent_st {
  std::atomic<CUstream_st*> stream = nullptr;
  std::atomic<std::uint64_t> position = 0;
};

namespace octavo::cuda {
namespace {

struct Streams {
  std::mutex mutex;
  std::set<CUstream_st*> all;
  std::uint64_t sum(std::uint64_t (*of)(const CUstream_st&)) {
    const std::lock_guard lock(mutex);
    std::uint64_t count = 0;
    for (const CUstream_st* stream : all) count += of(*stream);
    return count;
  }
};
Streams& streams() {
  static Streams s;
  return s;
}

// An allocation. It ends at the end of its last page (rounded for alignment), and the page after it is
// inaccessible.
struct Allocation {
  std::byte* pages;
  std::size_t bytes;  // bytes of the accessible pages
};

struct Memory {
  std::recursive_mutex mutex;
  std::map<void*, Allocation> allocations;
  int users = 0;
  std::set<const void*> code;
  std::size_t graphs = 0;

  void protect(int mode) {
    for (const auto& [address, a] : allocations) CHECK(mprotect(a.pages, a.bytes, mode) == 0);
  }
};
Memory& memory() {
  static Memory m;
  return m;
}

void count_graphs(int more) {
  const std::lock_guard lock(memory().mutex);
  memory().graphs += static_cast<std::size_t>(more);
}

std::atomic<bool> has_wgmma = false;

// Copies memory. Host memory is accessed when the stream reaches the copy, as with pinned memory.
void copy(CUstream_st* stream, void* to, const void* from, std::size_t bytes) {
  CHECK(stream->graph == nullptr, "a copy in a graph");
  emulated::enqueue(stream, [=] {
    const emulated::DeviceMemoryAccess access;
    std::memcpy(to, from, bytes);
  });
}

}  // namespace

namespace emulated {

void enqueue(CUstream_st* stream, Work work) {
  const std::lock_guard lock(stream->mutex);
  if (stream->graph != nullptr) {
    stream->graph->works.push_back(std::move(work));
    return;
  }
  stream->queue.push_back(std::move(work));
  ++stream->enqueued;
}

void load_code(const void* kernel) {
  const std::lock_guard lock(memory().mutex);
  memory().code.insert(kernel);
}

void set_wgmma(bool valid) { has_wgmma = valid; }

std::uint64_t work_done() {
  return streams().sum([](const CUstream_st& stream) { return stream.done; });
}
std::uint64_t work_waiting() {
  return streams().sum([](const CUstream_st& stream) { return stream.enqueued - stream.done; });
}

DeviceMemoryAccess::DeviceMemoryAccess() {
  memory().mutex.lock();
  if (memory().users++ == 0) memory().protect(PROT_READ | PROT_WRITE);
}
DeviceMemoryAccess::~DeviceMemoryAccess() {
  if (--memory().users == 0) memory().protect(PROT_NONE);
  memory().mutex.unlock();
}

std::size_t device_bytes() {
  std::size_t sum = 0;
  for (const auto& [address, a] : memory().allocations) sum += a.bytes;
  return sum;
}
void copy_device_contents(std::vector<std::byte>& contents) {
  contents.clear();
  for (const auto& [address, a] : memory().allocations)
    contents.insert(contents.end(), a.pages, a.pages + a.bytes);
}
void set_device_contents(const std::vector<std::byte>& contents) {
  const std::byte* from = contents.data();
  for (const auto& [address, a] : memory().allocations) {
    std::memcpy(a.pages, from, a.bytes);
    from += a.bytes;
  }
}

}  // namespace emulated

namespace runtime {

constexpr std::size_t kMemoryBytes = std::size_t{8} << 30;
Result<DeviceInfo> open(int) {
  return DeviceInfo{"emulated", 4, kMemoryBytes, has_wgmma, emulated::kDevicesOfHost};
}
void enter_device() {}
std::size_t free_bytes() {
  const std::lock_guard lock(memory().mutex);
  const std::size_t used = emulated::device_bytes() + memory().graphs * emulated::kGraphBytes +
                           memory().code.size() * emulated::kCodeBytes;
  return kMemoryBytes - std::min(kMemoryBytes, used);
}

Result<void*> allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  constexpr std::size_t kAlignment = 256;  // as in cudaMalloc
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t whole = (padded + page - 1) / page * page;
  void* pages = mmap(nullptr, whole + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return failure(ErrorCode::resource_exhausted, "no {} bytes of device memory", bytes);
  auto* begin = static_cast<std::byte*>(pages);
  void* address = begin + whole - padded;
  const std::lock_guard lock(memory().mutex);
  memory().allocations[address] = {begin, whole};
  return address;
}

// Waits for all work, as cudaFree does.
void release(void* device) {
  if (device == nullptr) return;
  {
    const std::lock_guard lock(streams().mutex);
    for (CUstream_st* stream : streams().all) stream->run_until(stream->enqueued);
  }
  const std::lock_guard lock(memory().mutex);
  const auto at = memory().allocations.find(device);
  CHECK(at != memory().allocations.end());
  CHECK(munmap(at->second.pages, at->second.bytes + static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) == 0);
  memory().allocations.erase(at);
}

Result<void*> allocate_pinned(std::size_t bytes) { return std::calloc(1, bytes + 1); }
void release_pinned(void* host) { std::free(host); }

StreamHandle make_stream() {
  auto* stream = new CUstream_st;
  const std::lock_guard lock(streams().mutex);
  streams().all.insert(stream);
  return stream;
}
void destroy_stream(StreamHandle stream) {
  {
    const std::lock_guard lock(streams().mutex);
    streams().all.erase(stream);
  }
  delete stream;
}
void synchronize(StreamHandle stream) { stream->run_until(stream->enqueued); }
void copy_to_device(StreamHandle stream, void* device, const void* host, std::size_t bytes) {
  copy(stream, device, host, bytes);
}
void copy_to_host(StreamHandle stream, void* host, const void* device, std::size_t bytes) {
  copy(stream, host, device, bytes);
}
void copy_on_device(StreamHandle stream, void* to, const void* from, std::size_t bytes) {
  copy(stream, to, from, bytes);
}

void clear(StreamHandle stream, void* device, std::size_t bytes) {
  emulated::enqueue(stream, [=] {
    const emulated::DeviceMemoryAccess access;
    std::memset(device, 0, bytes);
  });
}

void copy_at_once(void* to, const void* from, std::size_t bytes) {
  const emulated::DeviceMemoryAccess access;
  std::memcpy(to, from, bytes);
}

EventHandle make_event() { return new CUevent_st; }
void destroy_event(EventHandle event) { delete event; }
void record_event(StreamHandle stream, EventHandle event) {
  CHECK(stream->graph == nullptr, "an event in a graph");
  const std::lock_guard lock(stream->mutex);
  event->position = stream->enqueued;
  event->stream = stream;
}
void wait_for(EventHandle event) {
  if (CUstream_st* const stream = event->stream) stream->run_until(event->position);
}

void begin_graph(StreamHandle stream) {
  CHECK(stream->graph == nullptr, "a graph in a graph");
  const std::lock_guard lock(stream->mutex);
  stream->graph = new CUgraphExec_st;
  stream->recorder = std::this_thread::get_id();
}
GraphHandle end_graph(StreamHandle stream) {
  count_graphs(1);
  const std::lock_guard lock(stream->mutex);
  return std::exchange(stream->graph, nullptr);
}
void launch_graph(StreamHandle stream, GraphHandle graph) {
  CHECK(stream->graph == nullptr, "a graph in a graph");
  for (const Work& work : graph->works) emulated::enqueue(stream, work);
}
void destroy_graph(GraphHandle graph) {
  count_graphs(-1);
  delete graph;
}

}  // namespace runtime
}  // namespace octavo::cuda
