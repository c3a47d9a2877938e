// Positions in the text of a grammar, for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace octavo::grammar {

// Returns for example "line 2, column 7". Both numbers start at 1; a column is one character.
std::string line_and_column(std::string_view text, std::size_t offset);

// Describes the text at the offset: the quoted character, "the end of the line" or "the end of the text".
std::string found_at(std::string_view text, std::size_t offset);

}  // namespace octavo::grammar
