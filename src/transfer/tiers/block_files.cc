#include "transfer/tiers/block_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <optional>
#include <unordered_set>
#include <utility>

#include "transfer/tiers/direct_io.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kv";
constexpr std::string_view kUnfinished = ".part";
// An engine reads the folder again after other engines have changed more than 1/16 of the files.
constexpr std::size_t kStaleShare = 16;

std::string name_of(Hash128 hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

std::optional<Hash128> key_of(const fs::path& file) {
  const std::string name = file.stem();
  Hash128 key;
  const auto read = [](std::string_view digits, std::uint64_t& out) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    return error == std::errc{} && end == digits.data() + digits.size();
  };
  if (file.extension() != kSuffix || name.size() != 32) return std::nullopt;
  if (!read(std::string_view(name).substr(0, 16), key.high) ||
      !read(std::string_view(name).substr(16), key.low))
    return std::nullopt;
  return key;
}

std::unexpected<Error> refused(std::string_view what, const fs::path& path) {
  return failure(ErrorCode::io, "cannot {} {}: {}", what, path.string(), std::strerror(errno));
}

int direct_flag(std::size_t alignment) { return alignment == 1 ? 0 : O_DIRECT; }

class File {
 public:
  File(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Result<> write_all(int file, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return refused("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<BlockFiles>> BlockFiles::open(const std::string& folder, BlockFormat format,
                                                     std::int64_t bytes_max, EvictionPolicy policy,
                                                     bool direct_io) {
  const fs::path own = fs::path(folder) / name_of(format.digest());
  std::error_code error;
  fs::create_directories(own, error);
  if (error) return failure(ErrorCode::io, "cannot create {}: {}", own.string(), error.message());
  std::size_t alignment = 1;
  if (direct_io) {
    TRY(alignment, direct_io_alignment(own));
  }
  const std::size_t file_bytes = packed_bytes(format, alignment);
  const std::int64_t most = bytes_max / static_cast<std::int64_t>(file_bytes);
  if (most < 1)
    return invalid("", "{} bytes are too few, because one KV block has {} bytes", bytes_max, file_bytes);
  TRY(auto shared, SharedFolder::open(own));
  std::unique_ptr<BlockFiles> files(new BlockFiles(own, std::move(format), static_cast<std::size_t>(most),
                                                   alignment, std::move(shared), policy));
  SharedFolder::Locked locked(*files->shared_);
  TRY_VOID(files->read_folder(locked));
  files->count_changes(locked, files->make_room(locked, files->most_, nullptr));
  return files;
}

BlockFiles::BlockFiles(fs::path folder, BlockFormat format, std::size_t most, std::size_t alignment,
                       std::unique_ptr<SharedFolder> shared, EvictionPolicy policy)
    : folder_(std::move(folder)),
      format_(std::move(format)),
      most_(most),
      alignment_(alignment),
      policy_(policy),
      shared_(std::move(shared)),
      writer_(secret_seed()),
      order_(make_eviction_order(policy, most_)) {}

fs::path BlockFiles::path_of(Hash128 key) const {
  const std::string name = name_of(key);
  return folder_ / name.substr(0, 2) / (name + std::string(kSuffix));
}

// Returns a path for a temporary file that no other writer uses.
fs::path BlockFiles::unfinished_path(Hash128 key) {
  const std::lock_guard lock(mutex_);
  return fmt::format("{}.{:x}-{:x}{}", path_of(key).string(), writer_, ++writes_, kUnfinished);
}

// Updates the order in memory to the files of all engines and their times of last use. Deletes temporary
// files that no engine writes any more.
Result<> BlockFiles::read_folder(SharedFolder::Locked& locked) {
  std::vector<std::pair<fs::file_time_type, Hash128>> found;
  std::int64_t unfinished = 0;
  const bool alone = locked.alone();
  const std::string own = fmt::format(".{:x}-", writer_);
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code status;
    if (at->path().extension() == kUnfinished) {
      const bool is_left = alone && at->path().filename().string().find(own) == std::string::npos;
      if (!is_left || !fs::remove(at->path(), status)) ++unfinished;
    } else if (const auto key = key_of(at->path())) {
      const fs::file_time_type time = at->last_write_time(status);
      if (!status) found.emplace_back(time, *key);
    }
  }
  if (error) return failure(ErrorCode::io, "cannot read {}: {}", folder_.string(), error.message());
  std::ranges::sort(found);
  locked.state.files = std::ssize(found) + unfinished;
  changes_read_ = locked.state.changes;
  own_changes_ = 0;

  std::unordered_set<Hash128, HashOfHash> stored;
  for (const auto& [time, key] : found) stored.insert(key);
  const std::lock_guard lock(mutex_);
  for (const Hash128& key : order_->keys()) {
    if (stored.contains(key)) continue;
    order_->remove(key);
    removed_.push_back(key);
  }
  for (const auto& [time, key] : found) {
    const bool is_new = !order_->contains(key);
    if (is_new) order_->add(key);
    // ARC has already counted this engine's uses of blocks that it knows, so it must not count them again.
    if (is_new || policy_ == EvictionPolicy::lru) order_->use(key);
  }
  return {};
}

void BlockFiles::forget_all() {
  const std::lock_guard lock(mutex_);
  while (order_->size() > 0) removed_.push_back(order_->evict());
}

std::vector<Hash128> BlockFiles::take_removed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(removed_, {});
}

// Evicts blocks until the folder has at most `files` files, and returns the number of evicted files. Deletes
// the files, but renames the last one to `reuse`, unless `reuse` is null or a reader may have the file open.
// The mutex is unlocked during file operations, because the engine's thread needs it for contains().
std::int64_t BlockFiles::make_room(SharedFolder::Locked& locked, std::size_t files, const fs::path* reuse) {
  const auto too_many = [&] { return locked.state.files > static_cast<std::int64_t>(files); };
  const std::int64_t others = locked.state.changes - changes_read_ - own_changes_;
  const bool stale = others > static_cast<std::int64_t>(most_ / kStaleShare);
  // If the folder cannot be read, the order in memory is still usable.
  if (too_many() && (stale || count() == 0)) (void)read_folder(locked);
  std::int64_t evicted = 0;
  while (too_many()) {
    Hash128 key;
    {
      const std::lock_guard lock(mutex_);
      if (order_->size() == 0) break;  // other engines or threads are still writing the remaining files
      key = order_->evict();
      removed_.push_back(key);
      ++evicted_;
    }
    ++evicted;
    const bool last = locked.state.files == static_cast<std::int64_t>(files) + 1;
    const bool reuses = reuse != nullptr && last && locked.alone() && !is_read(key) &&
                        rename(path_of(key).c_str(), reuse->c_str()) == 0;
    if (reuses || removes(locked, key)) --locked.state.files;
  }
  return evicted;
}

// Deletes a block's file. Returns true if the caller must reduce the number of files. Returns false if
// another engine deleted the file: that engine has already reduced the number.
bool BlockFiles::removes(const SharedFolder::Locked& locked, Hash128 key) const {
  std::error_code stays;
  const bool others = locked.state.changes != changes_read_ + own_changes_;
  return fs::remove(path_of(key), stays) || (!stays && !others && locked.alone());
}

void BlockFiles::count_changes(SharedFolder::Locked& locked, std::int64_t count) {
  locked.state.changes += count;
  own_changes_ += count;
}

bool BlockFiles::is_read(Hash128 key) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(reading_, key) != reading_.end();
}

void BlockFiles::remove(std::span<const Hash128> keys) {
  SharedFolder::Locked locked(*shared_);
  for (const Hash128& key : keys) {
    {
      const std::lock_guard lock(mutex_);
      if (!order_->remove(key)) continue;
      removed_.push_back(key);
    }
    if (!removes(locked, key)) continue;
    --locked.state.files;
    count_changes(locked, 1);
  }
}

// Returns true if the block's file exists, and updates the order in memory: another engine may have written
// or deleted the file.
bool BlockFiles::look_up(Hash128 key) {
  const bool exists = access(path_of(key).c_str(), R_OK) == 0;
  const std::lock_guard lock(mutex_);
  if (exists && !order_->contains(key)) order_->add(key);
  if (!exists && order_->remove(key)) removed_.push_back(key);
  return exists;
}

void BlockFiles::look_up(std::span<const Hash128> keys) {
  (void)std::ranges::find_if_not(keys, [&](const Hash128& key) { return look_up(key); });
}

void BlockFiles::look_up_each(std::span<const Hash128> keys) {
  for (const Hash128& key : keys) look_up(key);
}

std::vector<bool> BlockFiles::contains(std::span<const Hash128> keys) const {
  std::vector<bool> stored;
  const std::lock_guard lock(mutex_);
  for (const Hash128& key : keys) stored.push_back(order_->contains(key));
  return stored;
}

// Begins with the last key, and gives each file a later time than the previous one, so that other engines
// read the same order of use.
void BlockFiles::touch(std::span<const Hash128> keys) {
  timespec times[2]{};
  clock_gettime(CLOCK_REALTIME, &times[0]);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    times[0].tv_nsec = std::min(times[0].tv_nsec + 1, 999'999'999L);
    times[1] = times[0];
    // If utimensat() fails, the only effect is that other engines see a less exact order of use.
    utimensat(AT_FDCWD, path_of(*key).c_str(), times, 0);
    const std::lock_guard lock(mutex_);
    order_->use(*key);
  }
  SharedFolder::Locked locked(*shared_);
  count_changes(locked, std::ssize(keys));
}

Result<> BlockFiles::read(Hash128 key, const TakeBlock& take) {
  const std::span<std::byte> room = packed_block(format_, alignment_);
  {
    const std::lock_guard lock(mutex_);
    if (!order_->contains(key))
      return failure(ErrorCode::not_found, "{} does not exist any more", path_of(key).string());
    reading_.push_back(key);
  }
  const Result<> good = read_file(key, room);
  {
    const std::lock_guard lock(mutex_);
    reading_.erase(std::ranges::find(reading_, key));
  }
  if (good) take(contents(format_, room));
  if (!good && good.error().code != ErrorCode::io) remove(std::span(&key, 1));
  return good;
}

// Reads until the block is complete. A file that was written without direct I/O has no padding.
Result<> BlockFiles::read_file(Hash128 key, std::span<std::byte> room) const {
  const fs::path path = path_of(key);
  const std::span<std::byte> packed = room.first(format_.stride());
  const File file(path, O_RDONLY | direct_flag(alignment_));
  if (file.fd() < 0 && errno == ENOENT)
    return failure(ErrorCode::not_found, "{} does not exist any more", path.string());
  if (file.fd() < 0) return refused("open", path);
  std::size_t done = 0;
  while (done < packed.size()) {
    const ssize_t got = ::read(file.fd(), room.data() + done, room.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused("read", path);
    done += static_cast<std::size_t>(got);
    // With direct I/O, a read that ends at an unaligned offset has reached the end of the file.
    const bool ends = got == 0 || done % alignment_ != 0;
    if (ends && done < packed.size())
      return failure(ErrorCode::corrupt, "a KV block of {} of {} bytes", done, packed.size());
  }
  return verify(format_, key, packed);
}

// Does nothing if another engine has already written the block.
Result<> BlockFiles::write(Hash128 key, const FillBlock& fill) {
  if (look_up(key)) return {};
  const std::span<std::byte> room = packed_block(format_, alignment_), packed = room.first(format_.stride());
  fill(contents(format_, packed));
  seal(format_, key, packed);
  // Clears the padding, because the buffer still has bytes of an earlier block there.
  std::ranges::fill(room.subspan(packed.size()), std::byte{});
  const fs::path path = path_of(key), unfinished = unfinished_path(key);
  std::error_code error;
  fs::create_directory(path.parent_path(), error);
  if (error)
    return failure(ErrorCode::io, "cannot create {}: {}", path.parent_path().string(), error.message());
  std::optional<File> file;
  Result<> written;
  std::int64_t evicted = 0;
  {
    SharedFolder::Locked locked(*shared_);
    evicted = make_room(locked, most_ - 1, &unfinished);
    file.emplace(unfinished, O_WRONLY | O_CREAT | O_NOFOLLOW | direct_flag(alignment_));
    if (file->fd() < 0) written = refused("open", unfinished);
    ++locked.state.files;
  }
  if (written) written = write_all(file->fd(), room, unfinished);
  SharedFolder::Locked locked(*shared_);
  // another engine may have written the block in the meantime
  const bool exists = access(path.c_str(), F_OK) == 0;
  if (written && rename(unfinished.c_str(), path.c_str()) != 0) written = refused("rename", unfinished);
  if (!written) fs::remove(unfinished, error);
  if (!written || exists) --locked.state.files;
  count_changes(locked, written ? 1 : evicted);
  if (!written) return written;
  const std::lock_guard lock(mutex_);
  order_->add(key);
  return {};
}

std::int64_t BlockFiles::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(order_->size());
}

std::int64_t BlockFiles::evicted() const {
  const std::lock_guard lock(mutex_);
  return evicted_;
}

}  // namespace octavo
