// Converts Python literals in tool calls to JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/openai/call_cursor.h"

namespace octavo::openai {

// Reads a string, number, list, tuple, set, dictionary, True, False, None, or JSON's true, false and null.
// Tuples and sets become lists. Returns false for other expressions. If `nested_quotes` is true, a string may
// contain unescaped quotes: a quote ends the string only if `,`, `)`, `]`, `}` or `:` follows. For an
// argument of a call, only `,` or `)` may follow, and the call must be able to continue or end there.
bool read_python(CallCursor& cursor, std::string& out, bool nested_quotes = false);

// Removes the underscores that Python allows between the digits of a number. Returns nullopt if an
// underscore is not between digits.
std::optional<std::string> without_underscores(std::string_view text);

}  // namespace octavo::openai
