// Reads ZIP archives with uncompressed entries, as torch.save writes them (PKWARE's APPNOTE.TXT, with
// 64-bit sizes). Compressed or encrypted entries and multi-file archives are errors.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

struct ZipEntry {
  std::string_view name;  // points into the file
  std::span<const std::byte> bytes;
};

inline constexpr std::size_t kZipEntriesMax = 1'000'000;

bool is_zip(std::span<const std::byte> file);

// Returns the entries in the order of the archive's directory. Does not check checksums, because that would
// read the whole file. Errors: corrupt; their messages begin with `what`, the name of the file.
Result<std::vector<ZipEntry>> parse_zip(std::span<const std::byte> file, std::string_view what);

}  // namespace octavo
