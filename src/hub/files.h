#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// Returns "" if the file is empty or missing.
std::string read_word(const std::filesystem::path& file);

// Creates or replaces a file atomically, and creates its folders. Returns io on failure.
Result<> write_whole(const std::filesystem::path& file, std::string_view bytes);

Result<> make_parent(const std::filesystem::path& file);

// The error contains the name of the file and the text of errno, such as "No space left on device".
std::unexpected<Error> file_failure(std::string_view what, const std::filesystem::path& file);

}  // namespace octavo::hub
