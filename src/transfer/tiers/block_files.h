// KV blocks as files of a folder, one file per block, with a maximum total size.
//
//   FOLDER/<digest of the format>-<engine>/<first 2 digits of the key>/<key>.kv
//
// A file is a packed block (block_format.h). It is written under another name and renamed when it is
// complete. Key and checksum detect what a crash or a full disk has left. If the folder is full, the evicted
// block's file is overwritten, because creating and deleting files costs most of the time of small writes.
// File times store the order of use across restarts. With direct I/O, a file is padded to the required
// alignment. Readers ignore the padding, so both modes read each other's files. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "transfer/block_format.h"
#include "transfer/tiers/block_store.h"
#include "transfer/tiers/eviction_order.h"

namespace octavo {

class BlockFiles final : public BlockStore {
 public:
  // Creates the folder, or reads its contents. engine: number of the engine, which has separate files.
  // direct_io: bypass the page cache. Errors: no space for a single block; another process has these files
  // open; a system error; direct_io on a file system without it (field use_odirect, unsupported).
  static Result<std::unique_ptr<BlockFiles>> open(const std::string& folder, BlockFormat format,
                                                  std::int64_t bytes_max, int engine,
                                                  EvictionPolicy policy = EvictionPolicy::lru,
                                                  bool direct_io = false);
  ~BlockFiles() override;
  BlockFiles(const BlockFiles&) = delete;
  BlockFiles& operator=(const BlockFiles&) = delete;

  using BlockStore::contains;
  std::vector<bool> contains(std::span<const Hash128> keys) const override;
  void touch(std::span<const Hash128> keys) override;
  // A full disk is also an io error.
  Result<> read(Hash128 key, const TakeBlock& take) override;
  Result<> write(Hash128 key, const FillBlock& fill) override;
  void remove(std::span<const Hash128> keys) override;
  void forget_all() override;  // the files stay on the disk

  BlockStore* own(KvMedium medium) override { return medium == KvMedium::storage ? this : nullptr; }
  std::vector<Hash128> take_gone() override;
  std::size_t most() const override { return most_; }
  std::int64_t count() const override;
  std::int64_t evicted() const override;

 private:
  BlockFiles(std::filesystem::path folder, BlockFormat format, std::int64_t most, std::size_t alignment,
             int lock, EvictionPolicy policy);
  Result<> find_all();
  std::filesystem::path path_of(Hash128 key) const;
  std::vector<Hash128> evict(std::size_t most);
  bool is_read(Hash128 key) const;
  Result<> read_file(Hash128 key, std::span<std::byte> room) const;
  void remove_files(std::span<const Hash128> keys) const;

  const std::filesystem::path folder_;
  const BlockFormat format_;
  const std::size_t most_;       // maximum number of files
  const std::size_t alignment_;  // alignment of direct I/O; 1: page cache
  const int lock_;               // descriptor of the locked lock file

  mutable std::mutex mutex_;  // guards all members below
  std::unique_ptr<EvictionOrder> order_;
  std::vector<Hash128> reading_;  // blocks being read, whose files must not be overwritten
  std::vector<Hash128> gone_;
  std::int64_t evicted_ = 0;
};

}  // namespace octavo
