// Ranks that compute together: numbered processes that call the same collective operations in the same order.
//
// A failed operation leaves its output undefined. Every later operation fails at once. So a long computation
// can check failure() at its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace octavo {

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sums values[i] of all ranks, in the order of ranks: the same bits on each rank, every time.
  virtual void all_reduce(std::span<float> values) = 0;
  // Gathers `mine` of every rank, in the order of ranks. all: `size` times the length of `mine`, or empty on
  // a rank that does not need it.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Gathers parts of different sizes. Rank r's part is bytes [starts[r], starts[r + 1]) of `all`, and must be
  // there before the call. `to`: the rank that needs the parts, or kEveryRank. On other ranks the parts of
  // others are undefined.
  static constexpr int kEveryRank = -1;
  virtual void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) = 0;
  // Sends rank 0's message to all others.
  virtual void broadcast(std::vector<std::byte>& message) = 0;
  // The same, if all ranks know the length.
  virtual void broadcast(std::span<std::byte> message) = 0;
  virtual void barrier() = 0;

  // Timeout after which a rank that others wait for counts as hung. Before this call, only a rank's death
  // ends a wait.
  virtual void set_timeout_ms(int ms) = 0;

  // Reason of the failure: a rank is dead or does not answer.
  virtual const std::optional<Error>& failure() const = 0;

  Result<> status() const {
    if (failure()) return std::unexpected(*failure());
    return {};
  }
};

// Starts for gather(): parts of `size` ranks.
inline std::size_t largest_part(std::span<const std::byte> all, std::span<const std::size_t> starts,
                                int size) {
  CHECK(std::cmp_equal(starts.size(), size + 1) && starts.back() <= all.size(), "{} parts of {} ranks",
        starts.size(), size);
  std::size_t most = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) most = std::max(most, starts[i + 1] - starts[i]);
  return most;
}

}  // namespace octavo
