#include "transfer/tiers/direct_io.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/pages.h"

namespace octavo {
namespace {

constexpr std::size_t kSector = 512;

// Returns the alignment for direct I/O, or 0 if the file has no direct I/O.
std::size_t alignment_of(int file) {
  // Since Linux 6.6, tmpfs accepts O_DIRECT. The flag has no effect there, because the files are in memory.
  struct statfs system{};
  if (fstatfs(file, &system) == 0 && system.f_type == TMPFS_MAGIC) return 0;
#ifdef STATX_DIOALIGN
  struct statx info{};
  if (statx(file, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 && (info.stx_mask & STATX_DIOALIGN) != 0) {
    if (info.stx_dio_offset_align == 0) return 0;
    return std::bit_ceil(std::max<std::size_t>({kSector, info.stx_dio_mem_align, info.stx_dio_offset_align}));
  }
#endif
  return kPage;
}

}  // namespace

// Creates a file in the folder, because statx and open() report the alignment only for files.
Result<std::size_t> direct_io_alignment(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "direct_io.part";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_DIRECT | O_CLOEXEC, 0600);
  const int refused = errno;
  const std::size_t alignment = file < 0 ? 0 : alignment_of(file);
  if (file >= 0) close(file);
  // open() may have created the file even if it failed
  unlink(path.c_str());
  if (file < 0 && refused != EINVAL)
    return failure(ErrorCode::io, "cannot open {}: {}", path.string(), std::strerror(refused));
  if (alignment == 0)
    return field_failure("use_odirect", ErrorCode::unsupported,
                         "the file system of {} does not support direct I/O", folder.string());
  return alignment;
}

}  // namespace octavo
