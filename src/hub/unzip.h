#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// Writes the archive's first member to `out` and syncs it to the disk. The member must be named `member`,
// be deflated, and have at most `bytes_max` bytes. Returns the SHA-256 of the content, or corrupt or io.
Result<std::string> unzip_first(const std::filesystem::path& archive, std::string_view member,
                                const std::filesystem::path& out, std::uint64_t bytes_max);

}  // namespace octavo::hub
