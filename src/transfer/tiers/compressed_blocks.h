// KV blocks that lie in another store with 8 bits a number: half of what bf16 takes, and a little less
// precise.
//
// A token's vector of a head becomes an f32 scale and a byte for each number, which times the scale is the
// number again: int8 (vLLM's int8_per_token_head) or fp8 (e4m3), rounded to nearest. Off what it was by at
// most
//
//   int8   1/254 of the vector's largest magnitude
//   fp8    1/16 of itself, or 1/458,752 of the largest where that is more
//
// and what f32 rounds, before it is rounded to the cache's format, which at most doubles that for bf16 and
// f16. Where a vector's largest is below 5.3e-36 (int8: 1.5e-36) its numbers become 0; one that has infinity
// or NaN becomes NaN. Blocks that are compressed are of a format of their own: nobody takes them for plain
// ones. Any thread.
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
// As options write them; without a value there is none.
inline constexpr std::string_view kBlockCompressionNames[] = {"none", "int8", "fp8"};

// What blocks of `format` are when they are compressed. Errors (unsupported): the cache's numbers have 8 bits
// already; blocks are more than vectors of numbers (windows, states, entries for several tokens).
Result<BlockFormat> compressed(const BlockFormat& format, BlockCompression by);

class CompressedBlocks final : public BlockStore {
 public:
  // store: of blocks of compressed(format, by), which is there; not none.
  CompressedBlocks(BlockFormat format, BlockCompression by, std::unique_ptr<BlockStore> store);

  using BlockStore::contains;
  std::vector<bool> contains(std::span<const Hash128> keys) const override { return store_->contains(keys); }
  bool must_look_up() const override { return store_->must_look_up(); }
  bool reachable() const override { return store_->reachable(); }
  std::size_t most() const override { return store_->most(); }
  void forget_all() override { store_->forget_all(); }
  // Whose blocks are counted and told of, not read.
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
