#include "tensor/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

namespace octavo {

// A node in the list of mappings that the signal handler reads. Nodes are reused but never freed, so the
// handler needs no lock.
struct Mapping {
  std::atomic<std::uintptr_t> begin = 0;  // 0: unused
  std::atomic<std::size_t> bytes = 0;
  std::atomic<bool> cut = false;
  Mapping* next = nullptr;
};

namespace {

std::atomic<Mapping*> mappings = nullptr;
std::mutex mappings_change;
std::uintptr_t page_bytes = 0;

// Handles SIGBUS. If the address belongs to a mapping, the file has become shorter, and the handler maps
// zeros from this page to the mapping's end. Otherwise it restores the default handler, the instruction
// runs again, and the process ends as usual.
void on_bus_error(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Mapping* m = mappings.load(); m != nullptr; m = m->next) {
    const std::uintptr_t begin = m->begin.load();
    if (begin == 0 || at - begin >= m->bytes.load()) continue;
    const std::uintptr_t page = at / page_bytes * page_bytes;
    m->cut.store(true);
    if (mmap(reinterpret_cast<void*>(page), begin + m->bytes.load() - page, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
      return;
  }
  std::signal(SIGBUS, SIG_DFL);
}

Mapping* add_mapping(const void* data, std::size_t bytes) {
  const std::lock_guard lock(mappings_change);
  if (page_bytes == 0) {
    page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
  }
  Mapping* free = mappings.load();
  while (free != nullptr && free->begin.load() != 0) free = free->next;
  const bool is_new = free == nullptr;
  if (is_new) free = new Mapping{.next = mappings.load()};
  free->cut.store(false);
  free->bytes.store(bytes);
  free->begin.store(reinterpret_cast<std::uintptr_t>(data));
  if (is_new) mappings.store(free);
  return free;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto system_failure = [&](const char* what) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    return failure(code, "{} {}: {}", what, path, std::strerror(errno));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_failure("cannot open");
  struct stat info;
  const bool known = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = known ? static_cast<std::size_t>(info.st_size) : 0;
  // mmap refuses a length of 0, so an empty file has no mapping.
  void* data = known && size > 0 ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  close(fd);
  if (!known) return failure(ErrorCode::io, "{} is not a regular file", path);
  if (data == MAP_FAILED) return system_failure("cannot map");
  Mapping* mapping = data != nullptr ? add_mapping(data, size) : nullptr;
  return MappedFile(path, static_cast<const std::byte*>(data), size,
                    {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size), info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec},
                    mapping);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(other.identity_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(identity_, other.identity_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  mapping_->begin.store(0);
  munmap(const_cast<std::byte*>(data_), size_);
}

Result<> MappedFile::intact() const {
  if (mapping_ == nullptr || !mapping_->cut.load()) return {};
  return failure(ErrorCode::io, "{} was shortened or became unreadable while it was in use", path_);
}

Result<> MappedFile::unchanged() const {
  struct stat info;
  if (stat(path_.c_str(), &info) != 0 || info.st_dev != identity_.device || info.st_ino != identity_.inode)
    return {};
  const Identity now{info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size), info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec};
  if (now == identity_) return {};
  return failure(ErrorCode::io, "{} was changed while it was in use", path_);
}

std::string MappedFile::identity() const {
  return fmt::format("{}:{}:{}:{}.{:09}", identity_.device, identity_.inode, identity_.bytes,
                     identity_.seconds, identity_.nanoseconds);
}

void MappedFile::prefetch(std::span<const std::byte> part) const {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size());
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_WILLNEED);
}

void MappedFile::release(std::span<const std::byte> part) const {
  // Releases only pages that are completely inside the part, because adjacent bytes may be in use.
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace octavo
