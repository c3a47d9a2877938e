// A library with NCCL's functions, for tests. Its ranks are threads of one process, and values are in host
// memory. NCCL does not define the order of addition, so this library begins each sum with a different rank.
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kFloat32 = 7, kFails = 3, kLost = 6;
std::size_t size_of(int type) { return type == kFloat32 ? sizeof(float) : 1; }

struct Piece {
  int peer;
  void* data;
  std::size_t bytes;
};

// Arguments of one rank's call; all ranks of the communicator can read it.
struct Call {
  enum Kind { reduce, gather, broadcast } kind;
  const void* from;
  void* to;
  std::size_t count;
  int type, root;
};

struct World {
  explicit World(int ranks) : size(ranks), calls(static_cast<std::size_t>(ranks)) {}

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0, arrived = 0, round = 0, code = 0;
  bool lost = false;
  std::vector<Call> calls;
  std::map<std::pair<int, int>, std::deque<Piece>> sent;  // pieces sent but not received yet

  // Waits until all ranks of the communicator have made this call.
  int meet(int rank, const Call& call) {
    std::unique_lock lock(mutex);
    calls[static_cast<std::size_t>(rank)] = call;
    const int mine = round;
    if (++arrived == size) {
      code = run();
      arrived = 0;
      ++round;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return round != mine || lost; });
    return round != mine ? code : kLost;
  }

  int run() {
    const Call& first = calls[0];
    for (const Call& c : calls)
      if (c.kind != first.kind || c.count != first.count || c.type != first.type) return kFails;
    const std::size_t bytes = first.count * size_of(first.type);
    if (first.kind == Call::reduce) add();
    for (Call& c : calls) {
      for (std::size_t rank = 0; first.kind == Call::gather && rank < calls.size(); ++rank)
        std::memmove(static_cast<char*>(c.to) + rank * bytes, calls[rank].from, bytes);
      if (first.kind == Call::broadcast)
        std::memmove(c.to, calls[static_cast<std::size_t>(first.root)].from, bytes);
    }
    return 0;
  }

  void add() {
    std::vector<float> sums(calls[0].count);
    for (std::size_t i = 0; i < sums.size(); ++i)
      for (std::size_t k = 0; k < calls.size(); ++k) {
        const float value = static_cast<const float*>(calls[(i + k) % calls.size()].from)[i];
        sums[i] = k == 0 ? value : sums[i] + value;
      }
    for (Call& c : calls) std::memcpy(c.to, sums.data(), sums.size() * sizeof(float));
  }

  int exchange(int rank, const std::vector<Piece>& sends, const std::vector<Piece>& receives) {
    std::unique_lock lock(mutex);
    for (const Piece& send : sends) sent[{rank, send.peer}].push_back(send);
    changed.notify_all();
    for (const Piece& receive : receives) {
      std::deque<Piece>& queue = sent[{receive.peer, rank}];
      changed.wait(lock, [&] { return !queue.empty() || lost; });
      if (queue.empty()) return kLost;
      if (queue.front().bytes != receive.bytes) return kFails;
      std::memcpy(receive.data, queue.front().data, receive.bytes);
      queue.pop_front();
      changed.notify_all();
    }
    for (const Piece& send : sends) {
      changed.wait(lock, [&] { return sent[{rank, send.peer}].empty() || lost; });
      if (lost) return kLost;
    }
    return 0;
  }
};

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<World>> worlds;
int last_world = 0;

}  // namespace

struct ncclComm {
  std::shared_ptr<World> world;
  int rank;
  bool lost = false;
};

namespace {
// true between ncclGroupStart and ncclGroupEnd of this thread
thread_local bool grouping = false;
thread_local ncclComm* grouped = nullptr;
thread_local std::vector<Piece> sends, receives;

// Stores the error for ncclCommGetAsyncError, as NCCL does.
int noted(ncclComm* comm, int code) {
  comm->lost |= code == kLost;
  return code == kLost ? 0 : code;
}
int call(ncclComm* comm, const Call& what) { return noted(comm, comm->world->meet(comm->rank, what)); }
}  // namespace

extern "C" {

struct ncclUniqueId {
  char internal[128];
};

int ncclGetVersion(int* version) {
  *version = 22'105;
  return 0;
}
int ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(worlds_mutex);
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "world %d", ++last_world);
  return 0;
}
int ncclCommInitRank(ncclComm** comm, int ranks, ncclUniqueId id, int rank) {
  std::shared_ptr<World> world;
  {
    const std::lock_guard lock(worlds_mutex);
    std::shared_ptr<World>& slot = worlds[id.internal];
    if (!slot) slot = std::make_shared<World>(ranks);
    world = slot;
    if (++world->joined == ranks) worlds.erase(id.internal);
  }
  if (world->size != ranks || rank < 0 || rank >= ranks) return kFails;
  *comm = new ncclComm{world, rank};
  return 0;
}
int ncclCommDestroy(ncclComm* comm) {
  delete comm;
  return 0;
}
int ncclCommAbort(ncclComm* comm) {
  {
    const std::lock_guard lock(comm->world->mutex);
    comm->world->lost = true;
    comm->world->changed.notify_all();
  }
  delete comm;
  return 0;
}
int ncclCommGetAsyncError(ncclComm* comm, int* code) {
  *code = comm->lost ? kLost : 0;
  return 0;
}
const char* ncclGetErrorString(int code) {
  return code == kLost ? "remote process exited or there was a network error" : "internal error";
}
int ncclGroupStart() {
  grouping = true;
  grouped = nullptr;
  sends.clear();
  receives.clear();
  return 0;
}
int ncclGroupEnd() {
  grouping = false;
  return grouped != nullptr ? noted(grouped, grouped->world->exchange(grouped->rank, sends, receives)) : 0;
}
int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int, ncclComm* comm, void*) {
  return call(comm, {Call::reduce, from, to, count, type, 0});
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type, ncclComm* comm, void*) {
  return call(comm, {Call::gather, from, to, count, type, 0});
}
int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, ncclComm* comm, void*) {
  return call(comm, {Call::broadcast, from, to, count, type, root});
}
int ncclSend(const void* data, std::size_t count, int type, int peer, ncclComm* comm, void*) {
  if (!grouping) return kFails;
  grouped = comm;
  sends.push_back({peer, const_cast<void*>(data), count * size_of(type)});
  return 0;
}
int ncclRecv(void* data, std::size_t count, int type, int peer, ncclComm* comm, void*) {
  if (!grouping) return kFails;
  grouped = comm;
  receives.push_back({peer, data, count * size_of(type)});
  return 0;
}

}  // extern "C"
