#include "weights/converted_weights.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "base/size_text.h"

namespace octavo {
namespace {

constexpr int kNice = 10;  // priority of the writer's thread: below that of steps
// Size of a huge page. Writes of this size and alignment let the system keep the file in huge pages, which
// it maps at once and without loss of speed.
constexpr std::size_t kWindow = std::size_t{2} << 20;
constexpr std::size_t kUnsynced = 32 * kWindow;  // bytes that the disk may be behind
constexpr std::array<char, 8> kMagic = {'o', 'c', 't', 'a', 'v', 'o', 'w', '1'};

struct Head {
  std::array<char, 8> magic;
  std::uint64_t numbers;
  Hash128 hash;  // of the numbers
};

constexpr std::size_t up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

Hash128 hash_of(std::span<const std::int64_t> numbers) {
  return hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(numbers), 0);
}

// Closes a file at the end of a scope.
struct File {
  int fd;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

auto io_error(const char* what, const std::string& path) {
  return failure(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io, "cannot {} {}: {}", what, path,
                 std::strerror(errno));
}

// A part of an unfinished file may be lost when the system restarts, so its name has the id of the start.
std::string unfinished_name(const std::string& path) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{}.{}{}", path, boot, kUnfinishedWeights);
}

Result<> write_all(int file, std::span<const std::byte> bytes, std::size_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return io_error("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::size_t>(done);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ConvertedWeights>> ConvertedWeights::open(const std::string& path, Hash128 key) {
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return io_error("open", path);
  struct stat info;
  if (fstat(file.fd, &info) != 0) return io_error("read", path);
  const auto size = static_cast<std::size_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size < sizeof(Head))
    return failure(ErrorCode::corrupt, "{} is not a file with weights", path);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (data == MAP_FAILED) return io_error("map", path);
  std::unique_ptr<ConvertedWeights> converted(new ConvertedWeights({static_cast<std::byte*>(data), size}));
  madvise(data, size, MADV_HUGEPAGE);  // the system may ignore it
#ifdef MADV_POPULATE_READ
  // Reads the file now, because an unreadable page would later end the process. Older systems do not have
  // this function and return EINVAL.
  if (madvise(data, size, MADV_POPULATE_READ) != 0 && errno != EINVAL) return io_error("read", path);
#endif
  TRY_VOID(converted->read_head(path, key));
  futimens(file.fd, nullptr);  // the time of the last use; fails if the file belongs to another user
  return converted;
}

ConvertedWeights::~ConvertedWeights() { munmap(file_.data(), file_.size()); }

Result<> ConvertedWeights::read_head(const std::string& path, Hash128 key) {
  Head head;
  std::memcpy(&head, file_.data(), sizeof head);
  const std::size_t most = (file_.size() - sizeof head) / sizeof(std::int64_t);
  if (head.magic == kMagic && head.numbers <= most)
    numbers_ = {reinterpret_cast<const std::int64_t*>(file_.data() + sizeof head), head.numbers};
  const bool valid = !numbers_.empty() && hash_of(numbers_) == head.hash;
  if (!valid || take() != static_cast<std::int64_t>(key.low) || take() != static_cast<std::int64_t>(key.high))
    return failure(ErrorCode::corrupt, "{} is damaged", path);
  matrices_left_ = take();
  return {};
}

// Returns 0 after the last number.
std::int64_t ConvertedWeights::take() {
  if (numbers_.empty()) return 0;
  const std::int64_t number = numbers_.front();
  numbers_ = numbers_.subspan(1);
  return number;
}

Result<WeightPtr> ConvertedWeights::next(Device& device, std::uint64_t name) {
  if (matrices_left_ == 0) return failure(ErrorCode::corrupt, "the file has fewer matrices than the model");
  if (take() != static_cast<std::int64_t>(name))
    return failure(ErrorCode::corrupt, "the file has another matrix in this position");
  --matrices_left_;
  WeightMemory memory;
  for (std::int64_t left = std::min(take(), std::ssize(numbers_)); left > 0; --left)
    memory.layout.push_back(take());
  for (std::int64_t left = std::min(take(), std::ssize(numbers_)); left > 0; --left) {
    const auto offset = static_cast<std::size_t>(take()), bytes = static_cast<std::size_t>(take());
    if (offset % kPage != 0 || offset > file_.size() || bytes > file_.size() - offset)
      return failure(ErrorCode::corrupt, "a matrix is not inside the file");
    memory.pieces.push_back(file_.subspan(offset, bytes));
  }
  return weight_in(device, memory);
}

ConvertedWeightsWriter::ConvertedWeightsWriter(std::string path, Hash128 key,
                                               std::span<const NamedWeight> weights)
    : path_(std::move(path)) {
  std::vector<WeightMemory> memories;
  std::size_t count = 3;
  for (const NamedWeight& one : weights) {
    const WeightMemory& memory = memories.emplace_back(memory_of(*one.weight));
    count += 3 + memory.layout.size() + 2 * memory.pieces.size();
  }
  std::vector<std::int64_t> numbers{static_cast<std::int64_t>(key.low), static_cast<std::int64_t>(key.high),
                                    std::ssize(weights)};
  bytes_ = up(sizeof(Head) + count * sizeof(std::int64_t), kWindow);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const WeightMemory& memory = memories[i];
    numbers.insert(numbers.end(), {static_cast<std::int64_t>(weights[i].name), std::ssize(memory.layout)});
    numbers.insert(numbers.end(), memory.layout.begin(), memory.layout.end());
    numbers.push_back(std::ssize(memory.pieces));
    for (const std::span<std::byte> piece : memory.pieces) {
      numbers.insert(numbers.end(), {static_cast<std::int64_t>(bytes_), std::ssize(piece)});
      pieces_.push_back({bytes_, piece});
      bytes_ = up(bytes_ + piece.size(), kPage);
    }
  }
  CHECK(numbers.size() == count);
  const Head head{.magic = kMagic, .numbers = numbers.size(), .hash = hash_of(numbers)};
  head_.resize(sizeof head + std::as_bytes(std::span(numbers)).size());
  std::memcpy(head_.data(), &head, sizeof head);
  std::memcpy(head_.data() + sizeof head, numbers.data(), head_.size() - sizeof head);
}

void ConvertedWeightsWriter::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    setpriority(PRIO_PROCESS, 0, kNice);  // Linux: only this thread
    const std::int64_t began_us = now_us();
    const auto written = write(stop);
    if (!written) return log_warning("the weight cache is not written: {}", written.error().message);
    if (*written)
      log_info("weight cache: wrote {} to {} in {:.1f} s", size_text(bytes_), path_,
               static_cast<double>(now_us() - began_us) * 1e-6);
  });
}

// Writes the head and gives the file its name.
Result<bool> ConvertedWeightsWriter::finish(int file, const std::string& unfinished) const {
  TRY_VOID(write_all(file, head_, 0, unfinished));
  if (fdatasync(file) != 0 || rename(unfinished.c_str(), path_.c_str()) != 0)
    return io_error("write", unfinished);
  return true;
}

// Returns false if another process writes the file, or if the thread must stop.
Result<bool> ConvertedWeightsWriter::write(const std::stop_token& stop) const {
  const std::string unfinished = unfinished_name(path_);
  const File file{::open(unfinished.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (file.fd < 0) return io_error("create", unfinished);
  if (flock(file.fd, LOCK_EX | LOCK_NB) != 0) return false;
  struct stat info;
  if (fstat(file.fd, &info) != 0) return io_error("read", unfinished);
  const std::size_t done = static_cast<std::size_t>(info.st_size) / kWindow * kWindow;
  auto complete = write_data(file.fd, std::max(done, up(head_.size(), kWindow)), stop);
  if (complete && *complete) complete = finish(file.fd, unfinished);
  if (!complete) unlink(unfinished.c_str());
  return complete;
}

// Writes the bytes of the file after `from`, which is a multiple of kWindow.
Result<bool> ConvertedWeightsWriter::write_data(int file, std::size_t from,
                                                const std::stop_token& stop) const {
  std::vector<std::byte> window(kWindow);
  auto piece = pieces_.begin();
  for (std::size_t begin = from; begin < bytes_; begin += kWindow) {
    if (stop.stop_requested()) return false;
    const std::size_t end = std::min(begin + kWindow, bytes_);
    while (piece != pieces_.end() && piece->offset + piece->bytes.size() <= begin) ++piece;
    std::ranges::fill(window, std::byte{});
    for (auto one = piece; one != pieces_.end() && one->offset < end; ++one) {
      const std::size_t first = std::max(begin, one->offset);
      const std::size_t last = std::min(end, one->offset + one->bytes.size());
      std::memcpy(window.data() + (first - begin), one->bytes.data() + (first - one->offset), last - first);
    }
    TRY_VOID(write_all(file, std::span(window).first(end - begin), begin, path_));
    // Waits for the disk now, so that neither the end of the process nor other programs wait for it later.
    const auto at = [&](std::size_t offset) { return static_cast<off_t>(offset); };
    sync_file_range(file, at(begin), at(kWindow), SYNC_FILE_RANGE_WRITE);
    if (begin >= kUnsynced)
      sync_file_range(file, at(begin - kUnsynced), at(kWindow),
                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  }
  return true;
}

}  // namespace octavo
