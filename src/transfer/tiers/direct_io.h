// Files that bypass the system's page cache (O_DIRECT).
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/error.h"

namespace octavo {

// Required alignment of addresses, offsets and sizes for files in that folder: the value of statx, or 4096 if
// it has none. Errors: no direct I/O (unsupported); a system error (io).
Result<std::size_t> direct_io_alignment(const std::filesystem::path& folder);

}  // namespace octavo
