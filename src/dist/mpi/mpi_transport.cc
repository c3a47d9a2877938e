// The MPI transport. It is a separate library, which the program loads if mpirun started it (mpi_plugin.h).
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "dist/mpi_plugin.h"

namespace octavo {
namespace {

// Number of polls before a rank sleeps, and the time for which it sleeps.
constexpr int kSpins = 200;
constexpr int kSleepUs = 50;

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    kept_.resize(static_cast<std::size_t>(size_));
  }
  // MPI_Finalize waits for all ranks, so it is skipped after a failure. If a rank exits without
  // MPI_Finalize, MPI also ends the other ranks.
  ~MpiTransport() override {
    if (!failed_) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<> exchange(std::span<const Send> sends, std::span<const Receive> receives, int timeout_ms) override {
    const Result<> done = run(sends, receives, timeout_ms);
    failed_ |= !done;
    return done;
  }

 private:
  Result<> run(std::span<const Send> sends, std::span<const Receive> receives, int timeout_ms) {
    std::vector<MPI_Request> requests(sends.size());
    for (std::size_t i = 0; i < sends.size(); ++i)
      if (const int code = MPI_Isend(sends[i].bytes.data(), static_cast<int>(sends[i].bytes.size()), MPI_BYTE,
                                     sends[i].to, 0, MPI_COMM_WORLD, &requests[i]);
          code != MPI_SUCCESS)
        return result_of(code);
    std::vector<Receive> left(receives.begin(), receives.end());
    std::int64_t slept_us = 0;
    for (int idle = 0;;) {
      bool moved = false;
      TRY_VOID(take_one(left, moved));
      int all_sent = 1;
      if (const int code =
              MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all_sent, MPI_STATUSES_IGNORE);
          code != MPI_SUCCESS)
        return result_of(code);
      if (all_sent && left.empty()) return {};
      if (moved) {
        idle = 0;
        slept_us = 0;
      } else if (++idle > kSpins) {
        const timespec time{.tv_sec = 0, .tv_nsec = kSleepUs * 1000};
        nanosleep(&time, nullptr);
        slept_us += kSleepUs;
      }
      if (timeout_ms > 0 && slept_us > std::int64_t{timeout_ms} * 1000)
        return failure(ErrorCode::unavailable, "rank {} has not answered for {} ms",
                       left.empty() ? sends[0].to : left[0].from, timeout_ms);
    }
  }

  // Takes a stored message, or the next message that arrived. Copies the message to the buffer that waits
  // for it, or stores it.
  Result<> take_one(std::vector<Receive>& left, bool& moved) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      std::deque<std::vector<std::byte>>& kept = kept_[static_cast<std::size_t>(left[i].from)];
      if (kept.empty()) continue;
      moved = true;
      TRY_VOID(check_size(left[i], kept.front().size()));
      std::ranges::copy(kept.front(), left[i].bytes.begin());
      kept.pop_front();
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      return {};
    }
    int found = 0;
    MPI_Message message;
    MPI_Status status;
    if (const int code = MPI_Improbe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, &message, &status);
        code != MPI_SUCCESS)
      return result_of(code);
    if (!found) return {};
    moved = true;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    const auto wanted = std::ranges::find(left, status.MPI_SOURCE, &Receive::from);
    std::byte* buffer = nullptr;
    if (wanted != left.end()) {
      TRY_VOID(check_size(*wanted, static_cast<std::size_t>(bytes)));
      buffer = wanted->bytes.data();
      left.erase(wanted);
    } else {
      auto& kept = kept_[static_cast<std::size_t>(status.MPI_SOURCE)];
      buffer = kept.emplace_back(static_cast<std::size_t>(bytes)).data();
    }
    const int code = MPI_Mrecv(buffer, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? Result<>() : result_of(code);
  }

  static Result<> check_size(const Receive& wanted, std::size_t bytes) {
    if (wanted.bytes.size() == bytes) return {};
    return failure(ErrorCode::internal, "rank {} sent {} bytes instead of {}", wanted.from, bytes,
                   wanted.bytes.size());
  }

  static Result<> result_of(int code) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    return failure(ErrorCode::unavailable, "MPI: {}", text);
  }

  int rank_ = 0, size_ = 1;
  bool failed_ = false;
  std::vector<std::deque<std::vector<std::byte>>> kept_;  // index: rank; messages that no call expects yet
};

}  // namespace
}  // namespace octavo

extern "C" __attribute__((visibility("default"))) octavo::Transport* octavo_open_mpi_transport(
    char* why, std::size_t why_size) {
  int begun = 0, level = 0;
  MPI_Initialized(&begun);
  const char* wrong = nullptr;
  if (begun)
    wrong = "MPI was already started in this process";
  else if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
    wrong = "MPI does not start";
  else if (level < MPI_THREAD_SERIALIZED)
    wrong = "MPI allows only one thread";
  if (wrong != nullptr) {
    std::strncpy(why, wrong, why_size - 1);
    return nullptr;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return new octavo::MpiTransport;
}
