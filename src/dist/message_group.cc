#include "dist/message_group.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace octavo {
namespace {

// Maximum bytes of a message, because MPI counts in ints, and because receive buffers should be small.
constexpr std::size_t kMessageBytes = std::size_t{16} << 20;
// Size in bytes above which a sum takes two exchanges: each rank sums one part, then sends this sum to the
// other ranks.
constexpr std::size_t kScatterBytes = 64 << 10;

template <class Piece>
void in_pieces(std::size_t size, std::size_t most, const Piece& piece) {
  for (std::size_t begin = 0; begin < size; begin += most) piece(begin, std::min(most, size - begin));
}

}  // namespace

MessageGroup::MessageGroup(Transport& transport, std::vector<int> members)
    : transport_(transport), members_(std::move(members)) {
  const auto own = std::ranges::find(members_, transport.rank());
  CHECK(own != members_.end(), "rank {} in a group of others", transport.rank());
  rank_ = static_cast<int>(own - members_.begin());
}

bool MessageGroup::exchange() {
  if (!failure_)
    if (const Result<> done = transport_.exchange(sends_, receives_, timeout_ms_); !done)
      failure_ = done.error();
  sends_.clear();
  receives_.clear();
  return !failure_;
}

void MessageGroup::all_reduce(std::span<float> values) {
  if (size() == 1) return;
  in_pieces(values.size(), kMessageBytes / sizeof(float), [&](std::size_t begin, std::size_t count) {
    const std::span<float> part = values.subspan(begin, count);
    size() > 2 && part.size_bytes() > kScatterBytes ? scatter_and_add(part) : gather_and_add(part);
  });
}

// Takes one exchange: every rank gathers all values and adds them.
void MessageGroup::gather_and_add(std::span<float> values) {
  others_.resize(members_.size() * values.size());
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i] == transport_.rank()) continue;
    sends_.push_back({members_[i], std::as_bytes(values)});
    receives_.push_back(
        {members_[i], std::as_writable_bytes(std::span(others_).subspan(i * values.size(), values.size()))});
  }
  if (exchange()) add_in_order(values, values.size());
}

// Takes two exchanges: every rank adds one part, then gets the sums of the other parts.
void MessageGroup::scatter_and_add(std::span<float> values) {
  const std::size_t each = (values.size() + members_.size() - 1) / members_.size();
  const auto part = [&](std::size_t i) {
    const std::size_t begin = std::min(i * each, values.size());
    return values.subspan(begin, std::min(each, values.size() - begin));
  };
  const std::span<float> mine = part(static_cast<std::size_t>(rank_));
  others_.resize(members_.size() * each);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i] == transport_.rank()) continue;
    sends_.push_back({members_[i], std::as_bytes(part(i))});
    receives_.push_back(
        {members_[i], std::as_writable_bytes(std::span(others_).subspan(i * each, mine.size()))});
  }
  if (!exchange()) return;
  add_in_order(mine, each);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i] == transport_.rank()) continue;
    sends_.push_back({members_[i], std::as_bytes(mine)});
    receives_.push_back({members_[i], std::as_writable_bytes(part(i))});
  }
  exchange();
}

// Adds the values of all ranks to `mine`, in the order of ranks. Rank i's values begin at others_[i *
// stride].
void MessageGroup::add_in_order(std::span<float> mine, std::size_t stride) {
  std::ranges::copy(mine,
                    others_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank_) * stride));
  std::copy_n(others_.begin(), mine.size(), mine.begin());
  for (std::size_t i = 1; i < members_.size(); ++i)
    for (std::size_t k = 0; k < mine.size(); ++k) mine[k] += others_[i * stride + k];
}

void MessageGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.empty() || all.size() == mine.size() * members_.size());
  // Ranks that do not need the parts receive them too, because messages must be received in order. `unused`
  // is the memory for this.
  std::vector<std::byte> unused(all.empty() ? mine.size() * members_.size() : 0);
  if (all.empty()) all = unused;
  in_pieces(mine.size(), kMessageBytes, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::span<std::byte> buffer = all.subspan(i * mine.size() + begin, count);
      if (members_[i] == transport_.rank()) {
        std::memcpy(buffer.data(), mine.data() + begin, count);
        continue;
      }
      sends_.push_back({members_[i], mine.subspan(begin, count)});
      receives_.push_back({members_[i], buffer});
    }
    exchange();
  });
}

void MessageGroup::gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) {
  in_pieces(largest_part(all, starts, size()), kMessageBytes, [&](std::size_t begin, std::size_t count) {
    const auto part = [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const std::size_t first = std::min(starts[r] + begin, starts[r + 1]);
      return all.subspan(first, std::min(count, starts[r + 1] - first));
    };
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == rank_) continue;
      const int member = members_[static_cast<std::size_t>(rank)];
      if ((to == kEveryRank || to == rank) && !part(rank_).empty()) sends_.push_back({member, part(rank_)});
      if ((to == kEveryRank || to == rank_) && !part(rank).empty()) receives_.push_back({member, part(rank)});
    }
    exchange();
  });
}

void MessageGroup::broadcast(std::vector<std::byte>& message) {
  std::uint64_t bytes = message.size();
  broadcast(std::as_writable_bytes(std::span(&bytes, 1)));
  if (failure_) return;
  message.resize(bytes);
  broadcast(std::span(message));
}

void MessageGroup::broadcast(std::span<std::byte> message) {
  in_pieces(message.size(), kMessageBytes, [&](std::size_t begin, std::size_t count) {
    const std::span<std::byte> part = message.subspan(begin, count);
    if (rank_ != 0) receives_.push_back({members_[0], part});
    for (std::size_t i = 1; rank_ == 0 && i < members_.size(); ++i) sends_.push_back({members_[i], part});
    exchange();
  });
}

void MessageGroup::barrier() {
  const std::byte mark{};
  std::vector<std::byte> all(members_.size());
  all_gather({&mark, 1}, all);
}

}  // namespace octavo
