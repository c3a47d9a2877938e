// KV tier on a disk: a folder with one file for each block, and a limit on the total size.
//
//   FOLDER/<digest of the format>/<first 2 digits of the key>/<key>.kv
//
// Several engines and processes may use a folder at the same time. They load each other's blocks and share
// the size limit. A file is a packed block (block_format.h). It is written under a temporary name and then
// renamed. After a crash a renamed file may still be incomplete; readers detect this by its key and checksum.
//
// File times store the order of use, so it survives restarts and other engines can read it. Each engine
// also keeps the order in memory. Before an engine evicts, it reads the folder again if other engines have
// changed more than 1/16 of the files. If no other engine has the folder open, a new block overwrites the
// evicted block's file. This saves creating and deleting a file, which takes most of the time of a small
// write.
//
// With direct I/O, files are padded to the required alignment. Readers ignore the padding, so an engine can
// read all files with and without direct I/O. Any thread may call the functions.
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
  // Creates the folder, or reads its contents. direct_io: bypass the page cache; returns unsupported if the
  // file system cannot do this. Other errors: bytes_max is less than one block, or a system error.
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
  // Errors: those of BlockStore::read, and io if the disk is full.
  Result<> read(Hash128 key, const TakeBlock& take) override;
  Result<> write(Hash128 key, const FillBlock& fill) override;
  void remove(std::span<const Hash128> keys) override;
  void forget_all() override;  // the files stay on the disk

  BlockStore* own(KvMedium medium) override { return medium == KvMedium::storage ? this : nullptr; }
  std::vector<Hash128> take_removed() override;
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
  // alignment in bytes; 1: no direct I/O
  const std::size_t alignment_;
  const EvictionPolicy policy_;
  const std::unique_ptr<SharedFolder> shared_;
  // random number in the names of this engine's temporary files
  const std::uint64_t writer_;

  // changes_read_ and own_changes_ may be accessed only while shared_ is locked. changes_read_: value of
  // SharedFolder::State::changes when this engine last read the folder.
  std::int64_t changes_read_ = 0;
  // changes by this engine since it last read the folder
  std::int64_t own_changes_ = 0;

  mutable std::mutex mutex_;  // guards all members below
  std::unique_ptr<EvictionOrder> order_;
  // blocks that threads are reading; their files must not be overwritten
  std::vector<Hash128> reading_;
  std::vector<Hash128> removed_;
  std::int64_t evicted_ = 0;
  std::uint64_t writes_ = 0;
};

}  // namespace octavo
