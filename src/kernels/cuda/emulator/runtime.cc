#include "kernels/cuda/runtime.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
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

// A CUDA stream. Only one thread may add work; any thread may wait for its events. The work runs when a
// thread waits, except after run_by_itself().
struct CUstream_st {
  std::recursive_mutex running;  // locked by the thread that runs the work
  std::mutex mutex;              // protects the following variables
  std::condition_variable_any changed;
  std::deque<Work> queue;
  std::uint64_t enqueued = 0, done = 0;
  CUgraphExec_st* graph = nullptr;
  std::thread::id recorder;
  std::jthread runner;

  std::uint64_t end() {
    const std::lock_guard lock(mutex);
    return enqueued;
  }

  void run_until(std::uint64_t position) {
    {
      const std::lock_guard lock(mutex);
      CHECK(graph == nullptr || recorder != std::this_thread::get_id(), "waiting in a graph");
    }
    const std::lock_guard run(running);
    Work work;
    if (!take(position, work)) return;
    // One object for all pieces of work, because creating such an object needs system calls.
    const octavo::cuda::emulated::DeviceMemoryAccess access;
    do work();
    while (take(position, work));
  }

  // Runs the work as soon as it is enqueued, as a GPU does. Collectives need it, because another process
  // waits for them while no thread of this process waits for the stream.
  void run_by_itself() {
    if (runner.joinable()) return;
    runner = std::jthread([this](const std::stop_token& stop) {
      while (true) {
        {
          std::unique_lock lock(mutex);
          if (!changed.wait(lock, stop, [&] { return done < enqueued; })) return;
        }
        run_until(end());
      }
    });
  }

 private:
  bool take(std::uint64_t position, Work& work) {
    const std::lock_guard lock(mutex);
    if (done >= position) return false;
    work = std::move(queue.front());
    queue.pop_front();
    ++done;
    return true;
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
    for (CUstream_st* stream : all) {
      const std::lock_guard stream_lock(stream->mutex);
      count += of(*stream);
    }
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
  // Another process may write to the memory, so it is no part of the comparison of two runs.
  bool shared = false;
};

// Contents of an IpcHandle.
struct SharedPages {
  std::int64_t process;
  std::int64_t descriptor;
  std::size_t bytes, offset;
};

struct Memory {
  std::recursive_mutex mutex;
  std::map<void*, Allocation> allocations;
  std::map<void*, Allocation> opened;  // of other processes
  int users = 0;
  std::set<const void*> code;
  std::size_t graphs = 0;

  void protect(int mode) {
    for (const auto* all : {&allocations, &opened})
      for (const auto& [address, a] : *all) CHECK(mprotect(a.pages, a.bytes, mode) == 0);
  }
};
Memory& memory() {
  static Memory m;
  return m;
}

// Gives this thread access to device memory, and ends it.
void take_memory() {
  memory().mutex.lock();
  if (memory().users++ == 0) memory().protect(PROT_READ | PROT_WRITE);
}
void release_memory() {
  if (--memory().users == 0) memory().protect(PROT_NONE);
  memory().mutex.unlock();
}

void count_graphs(int more) {
  const std::lock_guard lock(memory().mutex);
  memory().graphs += static_cast<std::size_t>(more);
}

std::atomic<bool> has_wgmma = false, opened_wgmma = false, memory_full = false;

bool has_room() {
  static const char* const folder = std::getenv("EMULATED_GPU_FULL");
  return !memory_full && (folder == nullptr ||
                          access((std::string(folder) + "/" + std::to_string(getpid())).c_str(), F_OK) != 0);
}

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
  stream->changed.notify_all();
}

void load_code(const void* kernel) {
  const std::lock_guard lock(memory().mutex);
  memory().code.insert(kernel);
}

void set_wgmma(bool valid) { has_wgmma = valid; }
void set_memory_full(bool full) { memory_full = full; }
std::size_t shared_bytes_max() { return opened_wgmma ? kSharedOfHopper : kSharedOfOthers; }

std::uint64_t work_done() {
  return streams().sum([](const CUstream_st& stream) { return stream.done; });
}
std::uint64_t work_waiting() {
  return streams().sum([](const CUstream_st& stream) { return stream.enqueued - stream.done; });
}

DeviceMemoryAccess::DeviceMemoryAccess() { take_memory(); }
DeviceMemoryAccess::~DeviceMemoryAccess() { release_memory(); }

std::size_t device_bytes() {
  std::size_t sum = 0;
  for (const auto& [address, a] : memory().allocations) sum += a.bytes;
  return sum;
}
void copy_device_contents(std::vector<std::byte>& contents) {
  contents.clear();
  for (const auto& [address, a] : memory().allocations)
    if (!a.shared) contents.insert(contents.end(), a.pages, a.pages + a.bytes);
}
void set_device_contents(const std::vector<std::byte>& contents) {
  const std::byte* from = contents.data();
  for (const auto& [address, a] : memory().allocations) {
    if (a.shared) continue;
    std::memcpy(a.pages, from, a.bytes);
    from += a.bytes;
  }
}

}  // namespace emulated

namespace runtime {

constexpr std::size_t kMemoryBytes = std::size_t{8} << 30;
Result<DeviceInfo> open(int) {
  opened_wgmma = has_wgmma.load();
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
  void* pages =
      has_room() ? mmap(nullptr, whole + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                 : MAP_FAILED;
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
    for (CUstream_st* stream : streams().all) stream->run_until(stream->end());
  }
  const std::lock_guard lock(memory().mutex);
  const auto at = memory().allocations.find(device);
  CHECK(at != memory().allocations.end());
  CHECK(munmap(at->second.pages, at->second.bytes + static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) == 0);
  memory().allocations.erase(at);
}

// Replaces the pages by pages of a file that other processes can open. The file stays open.
Result<IpcHandle> share(void* device) {
  const emulated::DeviceMemoryAccess access;
  Allocation& a = memory().allocations.at(device);
  const int file = memfd_create("emulated_gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(a.bytes)) != 0 ||
      std::cmp_not_equal(write(file, a.pages, a.bytes), a.bytes) ||
      mmap(a.pages, a.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != a.pages)
    return failure(ErrorCode::unavailable, "no {} bytes of shared memory", a.bytes);
  a.shared = true;
  const SharedPages pages{getpid(), file, a.bytes,
                          static_cast<std::size_t>(static_cast<std::byte*>(device) - a.pages)};
  IpcHandle handle{};
  std::memcpy(handle.data(), &pages, sizeof pages);
  return handle;
}
Result<void*> open_shared(const IpcHandle& handle) {
  SharedPages pages;
  std::memcpy(&pages, handle.data(), sizeof pages);
  const std::string path = fmt::format("/proc/{}/fd/{}", pages.process, pages.descriptor);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* begin = mmap(nullptr, pages.bytes, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  if (begin == MAP_FAILED) return failure(ErrorCode::unavailable, "no shared memory {}", path);
  void* address = static_cast<std::byte*>(begin) + pages.offset;
  const std::lock_guard lock(memory().mutex);
  memory().opened[address] = {static_cast<std::byte*>(begin), pages.bytes, true};
  return address;
}
void close_shared(void* device) {
  const std::lock_guard lock(memory().mutex);
  const auto at = memory().opened.find(device);
  CHECK(at != memory().opened.end() && munmap(at->second.pages, at->second.bytes) == 0);
  memory().opened.erase(at);
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
void synchronize(StreamHandle stream) { stream->run_until(stream->end()); }
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

// The function runs without access to device memory.
void call_host(StreamHandle stream, void (*run)(void* data), void* data) {
  emulated::enqueue(stream, [=] {
    release_memory();
    run(data);
    take_memory();
  });
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

// For libraries that enqueue work on the streams of this program (dist/testing/nccl_stand_in.cc). Copies the
// arguments, because a captured call runs many times.
extern "C" [[gnu::visibility("default")]] void octavo_emulated_enqueue(void* stream,
                                                                       void (*run)(const void* arguments),
                                                                       const void* arguments,
                                                                       std::size_t bytes) {
  auto* on = static_cast<CUstream_st*>(stream);
  const auto* from = static_cast<const std::byte*>(arguments);
  octavo::cuda::emulated::enqueue(on, [run, copy = std::vector<std::byte>(from, from + bytes)] {
    const octavo::cuda::emulated::DeviceMemoryAccess access;
    run(copy.data());
  });
  on->run_by_itself();
}
