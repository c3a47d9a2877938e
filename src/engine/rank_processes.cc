#include "engine/rank_processes.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"

namespace octavo {
namespace {

constexpr int kHungMs = 10'000;
constexpr int kEndMs = 2'000;

// What a rank says of its start.
struct Greeting {
  bool ready = true;
  ErrorCode code = ErrorCode::internal;
  char field[64] = {};
  char message[1024] = {};
};

Greeting greeting_of(const Result<>& ready) {
  Greeting greeting;
  if (ready) return greeting;
  greeting.ready = false;
  greeting.code = ready.error().code;
  ready.error().field.copy(greeting.field, sizeof greeting.field - 1);
  ready.error().message.copy(greeting.message, sizeof greeting.message - 1);
  return greeting;
}

// Nobody sends anything: what can be read is the end.
bool is_gone(int socket) {
  pollfd readable{socket, POLLIN, 0};
  return poll(&readable, 1, 0) != 0;
}

}  // namespace

Result<std::unique_ptr<RankProcesses>> RankProcesses::start(int size, const std::vector<std::string>& command) {
  if (command.empty())
    return field_failure("tensor_parallel_size", ErrorCode::unsupported,
                         "must be 1 where the engine has no process of its own, got {}", size);
  std::unique_ptr<RankProcesses> ranks(new RankProcesses);
  TRY(ranks->memory_, SharedMemory::create(SharedMemoryGroup::memory_bytes(size)));
  const int shared[] = {ranks->memory_.fd()};
  for (int rank = 1; rank < size; ++rank) {
    std::vector<std::string> arguments = command;
    arguments.push_back(std::to_string(rank));
    TRY(remote::ChildProcess child, remote::ChildProcess::start(arguments, "/proc/self/exe", shared));
    ranks->children_.push_back(std::move(child));
  }
  ranks->group_ = std::make_unique<SharedMemoryGroup>(
      ranks->memory_.bytes(), SharedMemoryGroupOptions{.rank = 0,
                                                       .size = size,
                                                       .check = [self = ranks.get()] { return self->check(); },
                                                       .spin = size <= usable_processors()});
  return ranks;
}

RankProcesses::~RankProcesses() {
  for (remote::ChildProcess& child : children_) child.stop(group_ && group_->failure() ? 0 : kEndMs);
}

Result<> RankProcesses::check() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (!is_gone(children_[i].socket.fd())) continue;
    const pid_t pid = children_[i].pid();
    return failure(ErrorCode::unavailable, "the process of rank {} ({}) has ended: {}", i + 1, pid,
                   children_[i].kill());
  }
  return {};
}

Result<> RankProcesses::agree() {
  const Greeting own;
  std::vector<Greeting> all(children_.size() + 1);
  group_->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  TRY_VOID(group_->status());
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (!all[rank].ready)
      return std::unexpected(
          Error{all[rank].code, fmt::format("rank {}: {}", rank, all[rank].message), all[rank].field});
  group_->set_timeout_ms(kHungMs);
  return {};
}

Result<std::unique_ptr<JoinedRank>> JoinedRank::join(int rank, int size) {
  if (rank < 1 || rank >= size) return invalid("run_rank", "must be 1 to {}, got {}", size - 1, rank);
  std::unique_ptr<JoinedRank> joined(new JoinedRank);
  TRY(joined->memory_, SharedMemory::open(remote::kChildSocket + 1));
  if (joined->memory_.bytes().size() != SharedMemoryGroup::memory_bytes(size))
    return failure(ErrorCode::corrupt, "{} bytes of shared memory", joined->memory_.bytes().size());
  const auto check = []() -> Result<> {
    if (is_gone(remote::kChildSocket)) return failure(ErrorCode::unavailable, "rank 0 has gone");
    return {};
  };
  joined->group_ = std::make_unique<SharedMemoryGroup>(
      joined->memory_.bytes(), SharedMemoryGroupOptions{
                                   .rank = rank, .size = size, .check = check, .spin = size <= usable_processors()});
  return joined;
}

Result<> JoinedRank::agree(const Result<>& ready) {
  const Greeting own = greeting_of(ready);
  std::vector<Greeting> all(static_cast<std::size_t>(group_->size()));
  group_->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  return ready;
}

}  // namespace octavo
