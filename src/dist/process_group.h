// Ranks that compute one thing together: processes, each with a number, that all call the same collective
// operations in the same order.
//
// A failed operation leaves its output undefined, and so does every later one, at once: who runs a long
// computation looks at failure() at its end.
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

  // values[i] of all ranks, added in the order of ranks: the same bits on each of them, every time.
  virtual void all_reduce(std::span<float> values) = 0;
  // What each rank has, in the order of ranks. all: `size` times as long as mine, or empty on a rank that has
  // no use for it.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Parts that differ in size: rank r's are bytes [starts[r], starts[r + 1]) of `all`, where its own stand
  // before. `to`: the rank that has a use for the others', or kEveryRank; what the rest have of them is
  // undefined.
  static constexpr int kEveryRank = -1;
  virtual void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) = 0;
  // Rank 0's message goes to all others.
  virtual void broadcast(std::vector<std::byte>& message) = 0;
  // The same, where all know how long it is.
  virtual void broadcast(std::span<std::byte> message) = 0;
  virtual void barrier() = 0;

  // From now on a rank that others wait for longer than this is taken for hung; before, only its end ends waiting.
  virtual void set_timeout_ms(int ms) = 0;

  // Why nothing works any more: a rank is gone, or does not answer.
  virtual const std::optional<Error>& failure() const = 0;

  Result<> status() const {
    if (failure()) return std::unexpected(*failure());
    return {};
  }
};

// For gather(): of the parts of `size` ranks.
inline std::size_t largest_part(std::span<const std::byte> all, std::span<const std::size_t> starts,
                                int size) {
  CHECK(std::cmp_equal(starts.size(), size + 1) && starts.back() <= all.size(), "{} parts of {} ranks",
        starts.size(), size);
  std::size_t most = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) most = std::max(most, starts[i + 1] - starts[i]);
  return most;
}

}  // namespace octavo
