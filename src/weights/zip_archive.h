// ZIP archives whose entries are stored as they are, which torch.save writes: PKWARE's APPNOTE.TXT, 64-bit
// sizes included. Compressed and encrypted entries, and archives of several files, are errors.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

struct ZipEntry {
  std::string_view name;  // inside the file, as are the bytes
  std::span<const std::byte> bytes;
};

inline constexpr std::size_t kZipEntriesMax = 1'000'000;

bool is_zip(std::span<const std::byte> file);

// In the order of the archive's directory. Checksums are not compared: that would read all of the file.
// Errors are ErrorCode::corrupt and begin with `what`, the file's name.
Result<std::vector<ZipEntry>> parse_zip(std::span<const std::byte> file, std::string_view what);

}  // namespace octavo
