// Reads structs of numbers from JSON files. A table lists the struct's fields with their limits.
#pragma once

#include <algorithm>
#include <boost/json/object.hpp>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

template <class Struct>
struct NumberField {
  std::string_view name;
  double Struct::* value;
  bool required = false;  // true: the field must exist and be above 0
  double min = 0;
  double max = std::numeric_limits<double>::max();
};

// Reads a file of at most 64 KiB that contains one JSON object.
Result<boost::json::object> read_json_object(const std::string& path);

// A field that the file lacks keeps its default. Returns an error that names the field if it is unknown or
// out of range.
template <class Struct, std::size_t N>
Result<Struct> read_number_fields(const std::string& path, const NumberField<Struct> (&fields)[N]) {
  TRY(const boost::json::object object, read_json_object(path));
  Struct read;
  for (const boost::json::key_value_pair& entry : object) {
    const std::string_view key = entry.key();
    const auto field = std::ranges::find(fields, key, &NumberField<Struct>::name);
    if (field == std::end(fields)) return invalid(key, "{}: is not a known field", path);
    boost::system::error_code error;
    const auto number = entry.value().to_number<double>(error);
    if (error || !(number >= field->min && number <= field->max) || (field->required && number == 0)) {
      const bool bounded = field->max < std::numeric_limits<double>::max();
      return invalid(field->name, "{}: must be a number {} {}{}", path, field->required ? "above" : "from",
                     field->min, bounded ? fmt::format(" to {}", field->max) : "");
    }
    read.*field->value = number;
  }
  for (const NumberField<Struct>& field : fields)
    if (field.required && !object.contains(field.name)) return invalid(field.name, "{}: is missing", path);
  return read;
}

}  // namespace octavo
