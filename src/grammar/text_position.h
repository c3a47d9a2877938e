// Positions in a grammar's text, for errors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace octavo::grammar {

// Returns "line 2, column 7". Both begin at 1, and a column is one character.
std::string line_and_column(std::string_view text, std::size_t offset);

// Returns the character at the offset in quotes, "the end of the line" or "the end of the text".
std::string found_at(std::string_view text, std::size_t offset);

}  // namespace octavo::grammar
