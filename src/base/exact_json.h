// JSON trees with exact numbers. Boost.JSON's numbers have 64 bits; a number that does not fit is stored as
// an object with one reserved key and the text of the number.
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

// Parses the value at the start of the text. taken: receives the number of bytes read; after an error, the
// number of bytes before the error.
boost::json::value parse_exact_json(std::string_view text, boost::system::error_code& error,
                                    std::size_t& taken, boost::json::storage_ptr memory = {},
                                    std::size_t depth_max = kExactJsonDepthMax);
boost::json::value parse_exact_json(std::string_view text, boost::system::error_code& error,
                                    boost::json::storage_ptr memory = {},
                                    std::size_t depth_max = kExactJsonDepthMax);

// Returns the text of a number that does not fit into 64 bits; null for other values.
const boost::json::string* long_number(const boost::json::value& value);
// Returns nullopt if the value is not a number.
std::optional<double> rounded_number(const boost::json::value& value);

// Returns compact JSON. Integers stay integers and fractions stay fractions.
std::string exact_json_text(const boost::json::value& value);

}  // namespace octavo
