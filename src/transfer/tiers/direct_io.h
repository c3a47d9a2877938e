// Support for files that bypass the page cache (O_DIRECT).
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/error.h"

namespace octavo {

// Returns the alignment that addresses, offsets and sizes need for files in this folder: the value of
// statx, or 4096 if statx reports none. Returns unsupported if the folder's file system has no direct I/O, or
// io after a system error.
Result<std::size_t> direct_io_alignment(const std::filesystem::path& folder);

}  // namespace octavo
