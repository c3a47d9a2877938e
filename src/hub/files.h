// Reads small files, and writes files atomically.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// Returns the first word of a file, "" for an empty or missing file.
std::string read_word(const std::filesystem::path& file);

// Creates or replaces a file atomically, and creates its folders. Error: io.
Result<> write_whole(const std::filesystem::path& file, std::string_view bytes);

// Creates the parent folder of the file. Error: io.
Result<> make_parent(const std::filesystem::path& file);

// An error such as "No space left on device", with the file's name.
std::unexpected<Error> file_failure(std::string_view what, const std::filesystem::path& file);

}  // namespace octavo::hub
