// Literals of Python, written as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/openai/call_cursor.h"

namespace octavo::openai {

// Reads a string, number, list, tuple, set, dictionary, True, False, None, or JSON's true, false, null. A
// tuple or a set becomes a list. Returns false for any other expression. nested_quotes: a quote ends a string
// only where a value can end.
bool read_python(CallCursor& cursor, std::string& out, bool nested_quotes = false);

// A number's text without the underscores that Python allows between digits; nullopt: an underscore is
// elsewhere.
std::optional<std::string> without_underscores(std::string_view text);

}  // namespace octavo::openai
