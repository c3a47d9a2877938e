// KV blocks as files in a folder: one file per block, with a limit on the total size.
//
//   FOLDER/<digest of the format>/<first 2 digits of the key>/<key>.kv
//
// Several engines and processes may use a folder at the same time. They find each other's blocks, and the
// limit applies to all of them together. A file is a packed block (block_format.h). It is written under a
// temporary name, and renamed when it is complete. Key and checksum detect files that a crash or a full disk
// has left incomplete.
//
// The times of the files store the order of use, across restarts and engines. Each engine has this order in
// memory. When an engine needs space, and other engines have used or written a certain fraction of the files,
// it reads the folder again. If no other engine has the folder open, the evicted block's file is overwritten.
// Creating and deleting files would take most of the time of small writes.
//
// With direct I/O, a file is padded to the required alignment. Readers ignore the padding, so files can be
// read with and without direct I/O. Any thread.
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
#include "transfer/tiers/shared_folder.h"

namespace octavo {

class BlockFiles final : public BlockStore {
 public:
  // Creates the folder, or reads its contents. direct_io: whether to bypass the page cache. Returns an error
  // if bytes_max is less than one block, or after a system error; returns unsupported for the field
  // use_odirect if the file system has no direct I/O.
  static Result<std::unique_ptr<BlockFiles>> open(const std::string& folder, BlockFormat format,
                                                  std::int64_t bytes_max,
                                                  EvictionPolicy policy = EvictionPolicy::lru,
                                                  bool direct_io = false);

  using BlockStore::contains;
  bool must_look_up() const override { return true; }
  std::vector<bool> contains(std::span<const Hash128> keys) const override;
  void look_up(std::span<const Hash128> keys) override;
  void look_up_each(std::span<const Hash128> keys) override;
  void touch(std::span<const Hash128> keys) override;
  // Returns io also if the disk is full.
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
  BlockFiles(std::filesystem::path folder, BlockFormat format, std::size_t most, std::size_t alignment,
             std::unique_ptr<SharedFolder> shared, EvictionPolicy policy);
  Result<> read_folder(SharedFolder::Locked& locked);
  std::filesystem::path path_of(Hash128 key) const;
  std::filesystem::path unfinished_path(Hash128 key);
  bool look_up(Hash128 key);
  std::int64_t make_room(SharedFolder::Locked& locked, std::size_t files, const std::filesystem::path* reuse);
  bool removes(const SharedFolder::Locked& locked, Hash128 key) const;
  bool is_read(Hash128 key) const;
  Result<> read_file(Hash128 key, std::span<std::byte> room) const;
  void count_changes(SharedFolder::Locked& locked, std::int64_t count);

  const std::filesystem::path folder_;
  const BlockFormat format_;
  const std::size_t most_;
  const std::size_t alignment_;  // alignment of direct I/O in bytes; 1: the page cache is used
  const EvictionPolicy policy_;
  const std::unique_ptr<SharedFolder> shared_;
  const std::uint64_t writer_;  // random number in the names of files that are being written

  // Guarded by the lock of shared_.
  std::int64_t changes_read_ = 0;  // SharedFolder::State::changes when the folder was last read
  std::int64_t own_changes_ = 0;   // number of changes by this engine since then

  mutable std::mutex mutex_;  // guards all members below
  std::unique_ptr<EvictionOrder> order_;
  std::vector<Hash128> reading_;  // keys of blocks being read, whose files must not be overwritten
  std::vector<Hash128> gone_;
  std::int64_t evicted_ = 0;
  std::uint64_t writes_ = 0;
};

}  // namespace octavo
