// UTF-8 by table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

// Returns the index of the first byte that does not belong to a complete, valid code point, or nullopt.
std::optional<std::size_t> invalid_utf8_at(std::string_view text);

// Returns the number of bytes (0 to 3) at the end that begin an incomplete code point.
std::size_t incomplete_utf8_tail(std::string_view text);

// Replaces invalid bytes by U+FFFD as Rust's from_utf8_lossy and Python's errors="replace" do
// ("substitution of maximal subparts", Unicode section 3.9).
std::string replace_invalid_utf8(std::string_view text);

}  // namespace octavo
