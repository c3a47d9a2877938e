// Says why a text is not JSON. Parsers only report "syntax error".
#pragma once

#include <string>
#include <string_view>

namespace octavo::openai {

// The reason, in words, why a parser stopped at this byte; "": none of the known ones.
std::string json_problem(std::string_view text, std::size_t at);

}  // namespace octavo::openai
