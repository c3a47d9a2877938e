// Files that are read and written past the system's page cache (O_DIRECT).
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/error.h"

namespace octavo {

// What addresses, offsets and sizes have to be multiples of, in files of that folder: what the file system
// says (statx), 4096 where it says nothing. Errors: it has no direct I/O (unsupported); the system refuses
// (io).
Result<std::size_t> direct_io_alignment(const std::filesystem::path& folder);

}  // namespace octavo
