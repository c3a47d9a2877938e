// KV blocks with 8 bits per number in another store: half the size of bf16, with a small loss of precision.
//
// The vector of one token and one head becomes an f32 scale and one byte for each number; number = scale *
// byte. Formats: int8 (vLLM's int8_per_token_head) and fp8 (e4m3), rounded to nearest. The maximum error is
//
//   int8   1/254 of the vector's largest magnitude
//   fp8    1/16 of the number, or 1/458,752 of the largest magnitude if that is more
//
// plus the rounding of f32, before rounding to the cache's format; for bf16 and f16 this at most doubles the
// error. If the largest magnitude is below 5.3e-36 (int8: 1.5e-36), all numbers become 0. A vector that
// contains infinity or NaN becomes NaN. Compressed blocks have another BlockFormat, so they are never read as
// plain blocks. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "transfer/block_format.h"
#include "transfer/tiers/block_store.h"

namespace octavo {

enum class BlockCompression : std::uint8_t { none, int8, fp8 };
// names in options
inline constexpr std::string_view kBlockCompressionNames[] = {"none", "int8", "fp8"};

// Returns the format of the compressed blocks of `format`. Returns unsupported if the cache already has 8
// bits per number, or if blocks contain more than vectors of numbers (windows, states, entries for several
// tokens).
Result<BlockFormat> compressed(const BlockFormat& format, BlockCompression by);

class CompressedBlocks final : public BlockStore {
 public:
  // store: contains blocks of the format compressed(format, by); not null. by: not `none`.
  CompressedBlocks(BlockFormat format, BlockCompression by, std::unique_ptr<BlockStore> store);

  using BlockStore::contains;
  std::vector<bool> contains(std::span<const Hash128> keys) const override { return store_->contains(keys); }
  bool must_look_up() const override { return store_->must_look_up(); }
  bool reachable() const override { return store_->reachable(); }
  std::size_t most() const override { return store_->most(); }
  void forget_all() override { store_->forget_all(); }
  // The result is used only for counts and events, not for reading blocks.
  BlockStore* own(KvMedium medium) override { return store_->own(medium); }

  void look_up(std::span<const Hash128> keys) override { store_->look_up(keys); }
  void look_up_each(std::span<const Hash128> keys) override { store_->look_up_each(keys); }
  void touch(std::span<const Hash128> keys) override { store_->touch(keys); }
  Result<> read(Hash128 key, const TakeBlock& take) override;
  Result<> write(Hash128 key, const FillBlock& fill) override;
  void remove(std::span<const Hash128> keys) override { store_->remove(keys); }

 private:
  const BlockFormat format_;
  const BlockCompression by_;
  const std::unique_ptr<BlockStore> store_;
};

}  // namespace octavo
