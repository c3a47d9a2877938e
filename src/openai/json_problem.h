// Explains why a text is not valid JSON, because parsers only report "syntax error".
#pragma once

#include <string>
#include <string_view>

namespace octavo::openai {

// Returns the reason why a JSON parser stopped at byte `at`, or "" if the reason is unknown.
std::string json_problem(std::string_view text, std::size_t at);

}  // namespace octavo::openai
