#include "transfer/tiers/store_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace octavo {
namespace {

constexpr std::int64_t kAwayUs = 10'000'000;
// Servers close idle connections. A connection that was idle for more than this time, in microseconds, is not
// reused.
constexpr std::int64_t kIdleUs = 60'000'000;
constexpr std::size_t kAtOnce = 128;  // keys in one lookup

std::string key_text(Hash128 hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

}  // namespace

Result<std::unique_ptr<BlockStore>> StoreBlocks::open(const std::string& url, const StoreKeys& keys,
                                                      BlockFormat format, int silence_ms) {
  TRY(ConnectStore connect, store_at(url, keys, silence_ms));
  std::unique_ptr<StoreBlocks> blocks(new StoreBlocks(std::move(connect), std::move(format)));
  // Connects now, so that a warning is logged at start if the server cannot be reached. Later calls try
  // again.
  blocks->look_up({});
  return blocks;
}

StoreBlocks::StoreBlocks(ConnectStore connect, BlockFormat format)
    : connect_(std::move(connect)),
      format_(std::move(format)),
      prefix_(fmt::format("octavo:kv:{}:", key_text(format_.digest()))) {}

std::string StoreBlocks::name_of(Hash128 key) const { return prefix_ + key_text(key); }

std::vector<std::string> StoreBlocks::names_of(std::span<const Hash128> keys) const {
  std::vector<std::string> names;
  for (const Hash128& key : keys) names.push_back(name_of(key));
  return names;
}

bool StoreBlocks::reachable() const { return now_us() >= away_until_us_; }

std::vector<bool> StoreBlocks::contains(std::span<const Hash128> keys) const {
  std::vector<bool> stored;
  const std::lock_guard lock(mutex_);
  for (const Hash128& key : keys) stored.push_back(known_.contains(key));
  return stored;
}

void StoreBlocks::forget_all() {
  const std::lock_guard lock(mutex_);
  known_.clear();
  order_.clear();
}

void StoreBlocks::know(Hash128 key) {
  if (!known_.insert(key).second) return;
  order_.push_back(key);
  while (order_.size() > kKnownMax) {
    known_.erase(order_.front());
    order_.pop_front();
  }
}

Result<std::unique_ptr<StoreClient>> StoreBlocks::take_client() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty() && idle_.back().since_us < now_us() - kIdleUs) idle_.clear();
    if (!idle_.empty()) {
      std::unique_ptr<StoreClient> client = std::move(idle_.back().client);
      idle_.pop_back();
      return client;
    }
  }
  return connect_();
}

// Calls `act` with a connection that no other thread uses. After an invalid response (corrupt), only this
// connection is closed. All other failures are returned as `unavailable`, because they concern the server and
// not this block.
template <class Do>
auto StoreBlocks::with_client(Do&& act) -> decltype(act(std::declval<StoreClient&>())) {
  if (!reachable())
    return failure(ErrorCode::unavailable, "the store has failed and is unused for some seconds");
  Result<std::unique_ptr<StoreClient>> client = take_client();
  auto done = client ? act(**client) : decltype(act(**client))(std::unexpected(client.error()));
  const std::lock_guard lock(mutex_);
  if (done) idle_.push_back({*std::move(client), now_us()});
  if (done || done.error().code == ErrorCode::corrupt) return done;
  idle_.clear();  // the failure concerns the server, so all idle connections are probably broken
  if (reachable()) log_warning("KV blocks in a store: {}", done.error().message);
  away_until_us_ = now_us() + kAwayUs;
  return failure(ErrorCode::unavailable, "{}", done.error().message);
}

void StoreBlocks::look_up(std::span<const Hash128> keys) {
  do {
    const auto some = keys.first(std::min(keys.size(), kAtOnce));
    const auto found = with_client([&](StoreClient& client) { return client.leading(names_of(some)); });
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < some.size(); ++i)
      if (found && i < *found) {
        know(some[i]);
      } else {
        known_.erase(some[i]);
      }
    if (!found || *found < some.size()) return;
    keys = keys.subspan(some.size());
  } while (!keys.empty());
}

void StoreBlocks::look_up_each(std::span<const Hash128> keys) {
  for (; !keys.empty(); keys = keys.subspan(std::min(keys.size(), kAtOnce))) {
    const auto some = keys.first(std::min(keys.size(), kAtOnce));
    const auto found = with_client([&](StoreClient& client) { return client.contains(names_of(some)); });
    if (!found) return;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < some.size(); ++i)
      if ((*found)[i]) {
        know(some[i]);
      } else {
        known_.erase(some[i]);
      }
  }
}

Result<> StoreBlocks::read(Hash128 key, const TakeBlock& take) {
  const std::span<std::byte> packed = packed_block(format_);
  const auto stored = with_client([&](StoreClient& client) { return client.get(name_of(key), packed); });
  Result<> good = failure(ErrorCode::not_found, "the store has deleted a KV block");
  if (!stored) {
    good = std::unexpected(stored.error());
  } else if (*stored) {
    good = verify(format_, key, packed);
  }
  if (good) take(contents(format_, packed));
  if (!good && good.error().code != ErrorCode::unavailable) remove(std::span(&key, 1));
  return good;
}

Result<> StoreBlocks::write(Hash128 key, const FillBlock& fill) {
  const std::span<std::byte> packed = packed_block(format_);
  fill(contents(format_, packed));
  seal(format_, key, packed);
  TRY_VOID(with_client([&](StoreClient& client) { return client.set(name_of(key), packed); }));
  const std::lock_guard lock(mutex_);
  know(key);
  return {};
}

// Also deletes the blocks on the server. Otherwise they would not be written again.
void StoreBlocks::remove(std::span<const Hash128> keys) {
  {
    const std::lock_guard lock(mutex_);
    for (const Hash128& key : keys) known_.erase(key);
  }
  for (; !keys.empty(); keys = keys.subspan(std::min(keys.size(), kAtOnce)))
    (void)with_client([&](StoreClient& client) {
      return client.remove(names_of(keys.first(std::min(keys.size(), kAtOnce))));
    });
}

}  // namespace octavo
