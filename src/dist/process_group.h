// A group of processes (ranks) that compute together. All ranks must call the same collective operations in
// the same order.
//
// If an operation fails, its output is undefined, and every later operation fails immediately. So a long
// computation may check failure() only at its end.
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

  // Sums values[i] over all ranks, in the order of ranks, so that the bits are the same on each rank and in
  // each run.
  virtual void all_reduce(std::span<float> values) = 0;
  // Gathers `mine` from every rank, in the order of ranks. `all` has size() times the length of `mine`, or
  // is empty on a rank that does not need the result.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Gathers parts of different sizes. Rank r's part is bytes [starts[r], starts[r + 1]) of `all`; rank r
  // must write its part before the call. `to` is the rank that needs the parts, or kEveryRank. On ranks
  // that do not need the parts, parts of other ranks are undefined.
  static constexpr int kEveryRank = -1;
  virtual void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) = 0;
  // Gathers each row of a matrix like gather(). A row has row_bytes bytes, and the parts cover it.
  virtual void gather_rows(std::span<std::byte> rows, std::size_t row_bytes,
                           std::span<const std::size_t> starts, int to) {
    for (; !rows.empty(); rows = rows.subspan(row_bytes)) gather(rows.first(row_bytes), starts, to);
  }
  // Sends rank 0's message to all other ranks.
  virtual void broadcast(std::vector<std::byte>& message) = 0;
  // Sends rank 0's message, whose length all ranks know, to all other ranks.
  virtual void broadcast(std::span<std::byte> message) = 0;
  virtual void barrier() = 0;

  // Sets the time after which a rank that does not respond counts as hung. Without a timeout, a wait ends
  // early only if a rank dies.
  virtual void set_timeout_ms(int ms) = 0;

  // Returns why the group has failed (a rank is dead or does not respond), or nullopt if it has not failed.
  virtual const std::optional<Error>& failure() const = 0;

  Result<> status() const {
    if (failure()) return std::unexpected(*failure());
    return {};
  }
};

// Returns the size of the largest part for gather(), among the parts of `size` ranks.
inline std::size_t largest_part(std::span<const std::byte> all, std::span<const std::size_t> starts,
                                int size) {
  CHECK(std::cmp_equal(starts.size(), size + 1) && starts.back() <= all.size(), "{} parts of {} ranks",
        starts.size(), size);
  std::size_t most = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) most = std::max(most, starts[i + 1] - starts[i]);
  return most;
}

}  // namespace octavo
