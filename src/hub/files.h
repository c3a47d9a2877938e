#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// Returns the first word of a file, or "" if the file is empty or missing.
std::string read_word(const std::filesystem::path& file);

// Creates or replaces a file atomically, and creates its folders. Errors: io.
Result<> write_whole(const std::filesystem::path& file, std::string_view bytes);

Result<> make_parent(const std::filesystem::path& file);

// Returns an error with the text of errno, such as "No space left on device", and the file's name.
std::unexpected<Error> file_failure(std::string_view what, const std::filesystem::path& file);

}  // namespace octavo::hub
