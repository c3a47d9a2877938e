// Converts Python literals to JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/openai/call_cursor.h"

namespace octavo::openai {

// Reads a string, number, list, tuple, set, dictionary, True, False, None, or JSON's true, false, null.
// Tuples and sets become lists. Returns false for other expressions. nested_quotes: a quote ends a string
// only at a position where the value can end.
bool read_python(CallCursor& cursor, std::string& out, bool nested_quotes = false);

// Removes the underscores that Python allows between digits of a number. nullopt: an underscore has another
// position.
std::optional<std::string> without_underscores(std::string_view text);

}  // namespace octavo::openai
