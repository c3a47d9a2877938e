// JSON trees in which each number keeps its exact value. Boost.JSON numbers have 64 bits. A number that
// does not fit is stored as an object with one reserved key, whose value is the number's text.
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

// Parses the value at the start of a text. taken: set to the number of bytes read; after an error, the
// number of bytes before it.
boost::json::value parse_exact_json(std::string_view text, boost::system::error_code& error,
                                    std::size_t& taken, boost::json::storage_ptr memory = {},
                                    std::size_t depth_max = kExactJsonDepthMax);
boost::json::value parse_exact_json(std::string_view text, boost::system::error_code& error,
                                    boost::json::storage_ptr memory = {},
                                    std::size_t depth_max = kExactJsonDepthMax);

// Returns the text of a number that does not fit into 64 bits; null for any other value.
const boost::json::string* long_number(const boost::json::value& value);
// The number, rounded to a double; nullopt: the value is not a number.
std::optional<double> rounded_number(const boost::json::value& value);

// Returns compact JSON. Numbers keep their value; integers stay integers, and fractions stay fractions.
std::string exact_json_text(const boost::json::value& value);

}  // namespace octavo
