// JSON trees in which each number keeps its value. Boost.JSON holds 64 bits: a number that does not fit is held as an
// object with one reserved key and the number's text.
#pragma once

#include <boost/json/storage_ptr.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

inline constexpr std::size_t kExactJsonDepthMax = 256;

// The value at the start of a text. `taken`: the bytes that were read, up to the error if there is one.
boost::json::value parse_exact_json(std::string_view text, boost::system::error_code& error, std::size_t& taken,
                                    boost::json::storage_ptr memory = {},
                                    std::size_t depth_max = kExactJsonDepthMax);
// The value that is the whole text.
boost::json::value parse_exact_json(std::string_view text, boost::system::error_code& error,
                                    boost::json::storage_ptr memory = {},
                                    std::size_t depth_max = kExactJsonDepthMax);

// The text of a number that 64 bits do not hold. Null: any other value.
const boost::json::string* long_number(const boost::json::value& value);
// Any number, rounded to a double. nullopt: no number.
std::optional<double> rounded_number(const boost::json::value& value);

// Compact JSON. A number has the value that was parsed, and is a whole number or a fraction as it was.
std::string exact_json_text(const boost::json::value& value);

}  // namespace octavo
