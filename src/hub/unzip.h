// Unpacks a file of a ZIP archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// Writes the archive's first member, which must be a deflated `member` of at most `bytes_max` bytes, to
// `out`, and syncs it. Returns its SHA-256. Errors: corrupt; io.
Result<std::string> unzip_first(const std::filesystem::path& archive, std::string_view member,
                                const std::filesystem::path& out, std::uint64_t bytes_max);

}  // namespace octavo::hub
