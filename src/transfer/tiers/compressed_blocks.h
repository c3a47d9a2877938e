// A BlockStore that compresses KV blocks to 8 bits per number (half the size of bf16) and puts them into
// another store. Compression loses some precision.
//
// A vector (one token, one head) becomes an f32 scale and one byte for each number, and number = scale *
// byte. The byte is int8 (vLLM's int8_per_token_head) or fp8 (e4m3), rounded to nearest. The maximum error
// is
//
//   int8   1/254 of the vector's largest magnitude
//   fp8    1/16 of the number, or 1/458,752 of the largest magnitude if that is more
//
// plus the rounding to f32 and to the cache's data type, which for bf16 and f16 at most doubles the error.
// A vector whose largest magnitude is below 5.3e-36 (int8: 1.5e-36) becomes all zeros. A vector that
// contains infinity or NaN becomes NaN. Compressed blocks have a separate BlockFormat, so no engine reads
// them as plain blocks. Any thread may call the functions.
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
inline constexpr std::string_view kBlockCompressionNames[] = {"none", "int8", "fp8"};

// Returns the format of compressed blocks. Returns unsupported if the cache has 8 bits per number or fewer,
// or if it has windows, recurrent states or entries for several tokens.
Result<BlockFormat> compressed(const BlockFormat& format, BlockCompression by);

class CompressedBlocks final : public BlockStore {
 public:
  // store: contains blocks in the format compressed(format, by). by: not `none`.
  CompressedBlocks(BlockFormat format, BlockCompression by, std::unique_ptr<BlockStore> store);

  using BlockStore::contains;
  std::vector<bool> contains(std::span<const Hash128> keys) const override { return store_->contains(keys); }
  bool must_look_up() const override { return store_->must_look_up(); }
  bool reachable() const override { return store_->reachable(); }
  std::size_t most() const override { return store_->most(); }
  void forget_all() override { store_->forget_all(); }
  // The returned store has compressed blocks. Use it only for counts and events, not to read or write.
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
