// ZIP archives with stored entries, as torch.save writes them: PKWARE's APPNOTE.TXT, including 64-bit sizes.
// Compressed and encrypted entries, and archives of several files, are errors.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

struct ZipEntry {
  std::string_view name;  // inside the file, like the bytes
  std::span<const std::byte> bytes;
};

inline constexpr std::size_t kZipEntriesMax = 1'000'000;

bool is_zip(std::span<const std::byte> file);

// In the order of the archive's directory. Does not check checksums, which would read the whole file. Errors
// are ErrorCode::corrupt and begin with `what`, the file's name.
Result<std::vector<ZipEntry>> parse_zip(std::span<const std::byte> file, std::string_view what);

}  // namespace octavo
