// A library with NCCL's functions, for tests. Its ranks are threads or processes of one host, and exchange
// values over shared memory. NCCL does not define the order of addition, so sums begin with different ranks.
//
// As with NCCL, a rank that dies is not noticed: the others wait until they call ncclCommAbort. Environment
// variables: if NCCL_STAND_IN_FAILS is set, no communicator can be created; NCCL_STAND_IN_HANGS is the number
// of a rank whose ncclCommInitRank waits forever.
//
// Operations run in the stream's order if the program has the emulated GPU (octavo_emulated_enqueue), and
// otherwise during the call.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kFloat32 = 7, kSystemError = 2, kInternalError = 3, kInvalidUsage = 5, kRemoteError = 6;
constexpr int kRanksMax = 8;
constexpr std::size_t kBoxBytes = std::size_t{256} << 10;
std::size_t size_of(int type) { return type == kFloat32 ? sizeof(float) : 1; }

// Values on the way from one rank to another. It is empty if `received` is equal to `sent`.
struct Box {
  std::atomic<std::uint64_t> sent, received;
  std::size_t bytes;
  std::byte data[kBoxBytes];
};

// Shared memory of a communicator, initially zero.
struct World {
  std::atomic<int> joined;
  std::atomic<bool> aborted;
  Box boxes[kRanksMax][kRanksMax];  // [from][to]
};

}  // namespace

struct ncclComm {
  World* world;
  int size, rank;
  std::atomic<int> error = 0;

  ncclComm(World* shared, int ranks, int own) : world(shared), size(ranks), rank(own) {}
};

namespace {

struct Transfer {
  bool sends;
  int peer;
  std::byte* data;
  std::size_t bytes, done = 0;
};

// Sleeps instead of yielding, because a yielding rank waits for a full time slice of every other process.
void wait_a_little() { usleep(20); }

// Runs transfers. Transfers to or from one rank run in their order. Returns NCCL's error code.
int run_transfers(const ncclComm& comm, std::span<Transfer> transfers) {
  World& world = *comm.world;
  for (bool left = true; left;) {
    left = false;
    bool moved = false;
    std::map<std::pair<bool, int>, bool> busy;
    for (Transfer& t : transfers) {
      if (t.done == t.bytes) continue;
      left = true;
      if (std::exchange(busy[{t.sends, t.peer}], true)) continue;
      Box& box = t.sends ? world.boxes[comm.rank][t.peer] : world.boxes[t.peer][comm.rank];
      if ((box.sent == box.received) != t.sends) continue;
      const std::size_t count = std::min(t.bytes - t.done, kBoxBytes);
      if (t.sends) {
        box.bytes = count;
        std::memcpy(box.data, t.data + t.done, count);
        ++box.sent;
      } else {
        if (box.bytes != count) return kInternalError;
        std::memcpy(t.data + t.done, box.data, count);
        ++box.received;
      }
      t.done += count;
      moved = true;
    }
    if (world.aborted) return kRemoteError;
    if (left && !moved) wait_a_little();
  }
  return 0;
}

struct Operation {
  enum Kind { reduce, gather, broadcast, transfers } kind;
  ncclComm* comm;
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
  int root;
  std::size_t transfer_count;  // for `transfers`, which follow the operation
};

// Sends this rank's values to all ranks, and receives theirs. all: the values of all ranks, in their order.
int gather(const Operation& o, std::byte* all) {
  std::vector<Transfer> transfers;
  const auto own = static_cast<std::size_t>(o.comm->rank) * o.bytes;
  std::memmove(all + own, o.from, o.bytes);
  for (int peer = 0; peer < o.comm->size; ++peer) {
    if (peer == o.comm->rank) continue;
    transfers.push_back({true, peer, all + own, o.bytes});
    transfers.push_back({false, peer, all + static_cast<std::size_t>(peer) * o.bytes, o.bytes});
  }
  return run_transfers(*o.comm, transfers);
}

int add(const Operation& o) {
  const auto ranks = static_cast<std::size_t>(o.comm->size), count = o.bytes / sizeof(float);
  std::vector<std::byte> all(ranks * o.bytes);
  if (const int code = gather(o, all.data()); code != 0) return code;
  const auto* parts = reinterpret_cast<const float*>(all.data());
  auto* sums = reinterpret_cast<float*>(o.to);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < ranks; ++k) {
      const float value = parts[(i + k) % ranks * count + i];
      sums[i] = k == 0 ? value : sums[i] + value;
    }
  return 0;
}

int broadcast(const Operation& o) {
  std::vector<Transfer> transfers;
  if (o.comm->rank == o.root) {
    if (o.to != o.from) std::memcpy(o.to, o.from, o.bytes);
    for (int peer = 0; peer < o.comm->size; ++peer)
      if (peer != o.root) transfers.push_back({true, peer, o.to, o.bytes});
  } else {
    transfers.push_back({false, o.root, o.to, o.bytes});
  }
  return run_transfers(*o.comm, transfers);
}

// `arguments` is an Operation and its transfers.
void run(const void* arguments) {
  const auto* bytes = static_cast<const std::byte*>(arguments);
  Operation o;
  std::memcpy(&o, bytes, sizeof o);
  std::vector<Transfer> transfers(o.transfer_count);
  if (!transfers.empty())
    std::memcpy(transfers.data(), bytes + sizeof o, transfers.size() * sizeof(Transfer));
  int code = 0;
  if (o.kind == Operation::reduce) code = add(o);
  if (o.kind == Operation::gather) code = gather(o, o.to);
  if (o.kind == Operation::broadcast) code = broadcast(o);
  if (o.kind == Operation::transfers) code = run_transfers(*o.comm, transfers);
  if (code != 0) o.comm->error = code;
}

int enqueue(Operation o, void* stream, const std::vector<Transfer>& transfers = {}) {
  using Enqueue = void (*)(void* stream, void (*run)(const void*), const void* arguments, std::size_t bytes);
  static const auto put = reinterpret_cast<Enqueue>(dlsym(RTLD_DEFAULT, "octavo_emulated_enqueue"));
  o.transfer_count = transfers.size();
  std::vector<std::byte> bytes(sizeof o + transfers.size() * sizeof(Transfer));
  std::memcpy(bytes.data(), &o, sizeof o);
  if (!transfers.empty()) std::memcpy(bytes.data() + sizeof o, transfers.data(), bytes.size() - sizeof o);
  put != nullptr ? put(stream, run, bytes.data(), bytes.size()) : run(bytes.data());
  return 0;
}

// Calls of this thread between ncclGroupStart and ncclGroupEnd.
struct Grouped {
  bool open = false;
  ncclComm* comm = nullptr;
  void* stream = nullptr;
  std::vector<Transfer> transfers;
};
thread_local Grouped grouped;

int add_to_group(const Transfer& transfer, ncclComm* comm, void* stream) {
  if (!grouped.open) return kInvalidUsage;
  grouped.comm = comm;
  grouped.stream = stream;
  grouped.transfers.push_back(transfer);
  return 0;
}

std::byte* mutable_bytes(const void* data) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(data));
}

}  // namespace

extern "C" {

struct ncclUniqueId {
  char internal[128];
};

int ncclGetVersion(int* version) {
  *version = 22'105;
  return 0;
}

// The id is the path of the memory's descriptor, which stays open until this process ends.
int ncclGetUniqueId(ncclUniqueId* id) {
  const int memory = memfd_create("nccl_stand_in", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, sizeof(World)) != 0) return kSystemError;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "/proc/%d/fd/%d", getpid(), memory);
  return 0;
}

int ncclCommInitRank(ncclComm** comm, int ranks, ncclUniqueId id, int rank) {
  if (rank < 0 || rank >= ranks || ranks > kRanksMax) return kInvalidUsage;
  if (std::getenv("NCCL_STAND_IN_FAILS") != nullptr) return kSystemError;
  if (const char* hangs = std::getenv("NCCL_STAND_IN_HANGS"); hangs != nullptr && std::atoi(hangs) == rank)
    for (;;) pause();
  const int memory = open(id.internal, O_RDWR | O_CLOEXEC);
  if (memory < 0) return kSystemError;
  void* pages = mmap(nullptr, sizeof(World), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  close(memory);
  if (pages == MAP_FAILED) return kSystemError;
  auto* world = static_cast<World*>(pages);
  ++world->joined;
  while (world->joined < ranks) wait_a_little();
  static std::mutex mutex;
  static std::deque<ncclComm> all;  // until the process ends
  const std::lock_guard lock(mutex);
  *comm = &all.emplace_back(world, ranks, rank);
  return 0;
}
int ncclCommAbort(ncclComm* comm) {
  comm->world->aborted = true;
  munmap(comm->world, sizeof(World));
  return 0;
}
int ncclCommGetAsyncError(ncclComm* comm, int* code) {
  *code = comm->error;
  return 0;
}
const char* ncclGetErrorString(int code) {
  return code == kRemoteError ? "remote process exited or there was a network error" : "internal error";
}

int ncclGroupStart() {
  grouped = {};
  grouped.open = true;
  return 0;
}
int ncclGroupEnd() {
  const Grouped group = std::exchange(grouped, {});
  if (group.comm == nullptr) return 0;
  return enqueue({Operation::transfers, group.comm, nullptr, nullptr, 0, 0, 0}, group.stream,
                 group.transfers);
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int, ncclComm* comm,
                  void* stream) {
  return enqueue(
      {Operation::reduce, comm, mutable_bytes(from), mutable_bytes(to), count * size_of(type), 0, 0}, stream);
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type, ncclComm* comm, void* stream) {
  return enqueue(
      {Operation::gather, comm, mutable_bytes(from), mutable_bytes(to), count * size_of(type), 0, 0}, stream);
}
int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, ncclComm* comm,
                  void* stream) {
  return enqueue(
      {Operation::broadcast, comm, mutable_bytes(from), mutable_bytes(to), count * size_of(type), root, 0},
      stream);
}
int ncclSend(const void* data, std::size_t count, int type, int peer, ncclComm* comm, void* stream) {
  return add_to_group({true, peer, mutable_bytes(data), count * size_of(type)}, comm, stream);
}
int ncclRecv(void* data, std::size_t count, int type, int peer, ncclComm* comm, void* stream) {
  return add_to_group({false, peer, mutable_bytes(data), count * size_of(type)}, comm, stream);
}

}  // extern "C"
