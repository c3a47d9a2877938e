#include "transfer/tiers/block_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "transfer/tiers/direct_io.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kv";
constexpr std::string_view kUnfinished = ".part";

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

// Owns a file descriptor.
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

}  // namespace

Result<std::unique_ptr<BlockFiles>> BlockFiles::open(const std::string& folder, BlockFormat format,
                                                     std::int64_t bytes_max, int engine,
                                                     EvictionPolicy policy, bool direct_io) {
  const fs::path own = fs::path(folder) / fmt::format("{}-{}", name_of(format.digest()), engine);
  std::error_code error;
  fs::create_directories(own, error);
  if (error) return failure(ErrorCode::io, "cannot make {}: {}", own.string(), error.message());
  std::size_t alignment = 1;
  if (direct_io) {
    TRY(alignment, direct_io_alignment(own));
  }
  const std::size_t file_bytes = packed_bytes(format, alignment);
  const std::int64_t most = bytes_max / static_cast<std::int64_t>(file_bytes);
  if (most < 1) return invalid("", "{} bytes hold no KV block of {}", bytes_max, file_bytes);
  const fs::path lock_path = own / "lock";
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return refused("open", lock_path);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return failure(ErrorCode::unavailable, "{} is used by another engine", own.string());
  }
  std::unique_ptr<BlockFiles> files(new BlockFiles(own, std::move(format), most, alignment, lock, policy));
  TRY_VOID(files->find_all());
  return files;
}

BlockFiles::BlockFiles(fs::path folder, BlockFormat format, std::int64_t most, std::size_t alignment,
                       int lock, EvictionPolicy policy)
    : folder_(std::move(folder)),
      format_(std::move(format)),
      most_(static_cast<std::size_t>(most)),
      alignment_(alignment),
      lock_(lock),
      order_(make_eviction_order(policy, most_)) {}

BlockFiles::~BlockFiles() { close(lock_); }

fs::path BlockFiles::path_of(Hash128 key) const {
  const std::string name = name_of(key);
  return folder_ / name.substr(0, 2) / (name + std::string(kSuffix));
}

// Finds the files of earlier processes: complete ones in the order of their use, and incomplete ones.
Result<> BlockFiles::find_all() {
  std::vector<std::pair<fs::file_time_type, Hash128>> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == kUnfinished) {
      std::error_code stays;
      fs::remove(at->path(), stays);
    } else if (const auto key = key_of(at->path())) {
      std::error_code gone;
      const fs::file_time_type time = at->last_write_time(gone);
      if (!gone) found.emplace_back(time, *key);
    }
  }
  if (error) return failure(ErrorCode::io, "cannot read {}: {}", folder_.string(), error.message());
  std::ranges::sort(found);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [time, key] : found) {
      order_->add(key);
      order_->use(key);
    }
  }
  remove_files(evict(most_));
  return {};
}

void BlockFiles::forget_all() {
  const std::lock_guard lock(mutex_);
  while (order_->size() > 0) gone_.push_back(order_->evict());
}

std::vector<Hash128> BlockFiles::take_gone() {
  const std::lock_guard lock(mutex_);
  return std::exchange(gone_, {});
}

// Chooses the blocks to evict. The engine's thread calls contains(), so it must not wait for file operations.
std::vector<Hash128> BlockFiles::evict(std::size_t most) {
  std::vector<Hash128> evicted;
  const std::lock_guard lock(mutex_);
  while (order_->size() > most) evicted.push_back(order_->evict());
  gone_.insert(gone_.end(), evicted.begin(), evicted.end());
  evicted_ += std::ssize(evicted);
  return evicted;
}

bool BlockFiles::is_read(Hash128 key) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(reading_, key) != reading_.end();
}

void BlockFiles::remove_files(std::span<const Hash128> keys) const {
  for (const Hash128& key : keys) {
    std::error_code stays;
    fs::remove(path_of(key), stays);
  }
}

void BlockFiles::remove(std::span<const Hash128> keys) {
  remove_files(keys);
  const std::lock_guard lock(mutex_);
  for (const Hash128& key : keys)
    if (order_->remove(key)) gone_.push_back(key);
}

std::vector<bool> BlockFiles::contains(std::span<const Hash128> keys) const {
  std::vector<bool> there;
  const std::lock_guard lock(mutex_);
  for (const Hash128& key : keys) there.push_back(order_->contains(key));
  return there;
}

void BlockFiles::touch(std::span<const Hash128> keys) {
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    utimensat(AT_FDCWD, path_of(*key).c_str(), nullptr,
              0);  // without it, the order after a restart is less exact
    const std::lock_guard lock(mutex_);
    order_->use(*key);
  }
}

Result<> BlockFiles::read(Hash128 key, const TakeBlock& take) {
  const std::span<std::byte> room = packed_block(format_, alignment_);
  {
    const std::lock_guard lock(mutex_);
    if (!order_->contains(key)) return failure(ErrorCode::not_found, "{} is gone", path_of(key).string());
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

// Reads until the block is complete: the padding after it may be missing.
Result<> BlockFiles::read_file(Hash128 key, std::span<std::byte> room) const {
  const fs::path path = path_of(key);
  const std::span<std::byte> packed = room.first(format_.stride());
  const File file(path, O_RDONLY | direct_flag(alignment_));
  if (file.fd() < 0 && errno == ENOENT) return failure(ErrorCode::not_found, "{} is gone", path.string());
  if (file.fd() < 0) return refused("open", path);
  std::size_t done = 0;
  while (done < packed.size()) {
    const ssize_t got = ::read(file.fd(), room.data() + done, room.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused("read", path);
    done += static_cast<std::size_t>(got);
    // Only the end of the file is not a multiple of the alignment.
    const bool ends = got == 0 || done % alignment_ != 0;
    if (ends && done < packed.size())
      return failure(ErrorCode::corrupt, "a KV block of {} of {} bytes", done, packed.size());
  }
  return verify(format_, key, packed);
}

Result<> BlockFiles::write(Hash128 key, const FillBlock& fill) {
  const std::span<std::byte> room = packed_block(format_, alignment_), packed = room.first(format_.stride());
  fill(contents(format_, packed));
  seal(format_, key, packed);
  // The buffer contains other files of this thread.
  std::ranges::fill(room.subspan(packed.size()), std::byte{});
  const fs::path path = path_of(key);
  const fs::path unfinished = path.string() + std::string(kUnfinished);
  std::error_code error;
  fs::create_directory(path.parent_path(), error);
  if (error)
    return failure(ErrorCode::io, "cannot make {}: {}", path.parent_path().string(), error.message());
  // Evicts before the file exists, so that the folder never exceeds its size. No read of an evicted block can
  // start.
  std::vector<Hash128> evicted = evict(most_ - 1);
  if (!evicted.empty() && !is_read(evicted.back()) &&
      rename(path_of(evicted.back()).c_str(), unfinished.c_str()) == 0)
    evicted.pop_back();
  remove_files(evicted);
  const auto write_all = [&]() -> Result<> {
    const File file(unfinished, O_WRONLY | O_CREAT | O_NOFOLLOW | direct_flag(alignment_));
    if (file.fd() < 0) return refused("open", unfinished);
    for (std::span<const std::byte> rest = room; !rest.empty();) {
      const ssize_t put = ::write(file.fd(), rest.data(), rest.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return refused("write", unfinished);
      rest = rest.subspan(static_cast<std::size_t>(put));
    }
    if (rename(unfinished.c_str(), path.c_str()) != 0) return refused("rename", unfinished);
    return {};
  };
  const Result<> written = write_all();
  if (!written) {
    fs::remove(unfinished, error);
    return written;
  }
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
