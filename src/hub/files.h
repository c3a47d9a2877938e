// Small files, and files that are there only when they are whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// The first word of a file; "" when there is none.
std::string read_word(const std::filesystem::path& file);

// Writes a file anew, and the folders on the way to it: readers find the old one or the new one. Error: io.
Result<> write_whole(const std::filesystem::path& file, std::string_view bytes);

// Makes the folder that is to hold the file. Error: io.
Result<> make_parent(const std::filesystem::path& file);

// "No space left on device", as an error of the file.
std::unexpected<Error> file_failure(std::string_view what, const std::filesystem::path& file);

}  // namespace octavo::hub
