// KV blocks as files of a folder, a file for each, some of them evicted where they would take more than so
// many bytes.
//
//   FOLDER/<digest of the format>-<engine>/<first 2 digits of the key>/<key>.kv
//
// A file is a packed block (block_format.h). It is written under another name and renamed when it is whole;
// what a crash or a full disk has left of one is told by its key and checksum. Where there is room for no
// more files, the one of the block that makes room is overwritten: making and deleting files is most of what
// writing small blocks costs. The order of use outlives the process as the files' times. With direct I/O a
// file is filled up to a multiple of what that asks for; what is behind the block is read by nobody, so that
// files of both ways are those of either. Any thread.
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
  // Makes the folder, or finds what is in it. engine: its number; each has its own files. Errors: no room for
  // a single block; another process has these files open; the system refuses; with direct_io, which goes past
  // the page cache, a file system that has none (field use_odirect, unsupported).
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
  // A full disk is an error of io, too.
  Result<> read(Hash128 key, const TakeBlock& take) override;
  Result<> write(Hash128 key, const FillBlock& fill) override;
  void remove(std::span<const Hash128> keys) override;
  void forget_all() override;  // their files stay

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
  const std::size_t most_;       // files
  const std::size_t alignment_;  // of direct I/O; 1: through the page cache
  const int lock_;               // an open file, locked

  mutable std::mutex mutex_;  // guards all below
  std::unique_ptr<EvictionOrder> order_;
  std::vector<Hash128> reading_;  // their files are not overwritten
  std::vector<Hash128> gone_;
  std::int64_t evicted_ = 0;
};

}  // namespace octavo
