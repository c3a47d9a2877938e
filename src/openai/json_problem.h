// Explains why a text is not JSON, since parsers only report "syntax error".
#pragma once

#include <string>
#include <string_view>

namespace octavo::openai {

// Returns why a parser stopped at this byte; "" for unknown reasons.
std::string json_problem(std::string_view text, std::size_t at);

}  // namespace octavo::openai
