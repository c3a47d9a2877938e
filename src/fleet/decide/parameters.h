// Reads a plugin's parameters strictly: a wrong type, a value out of range and an unknown name are errors
// that name the field.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::fleet {

// Go's durations, "1.5s" or "1h30m", in microseconds; units ns, us, ms, s, m and h.
std::optional<double> duration_us(std::string_view text);

// nullopt: invalid text, or more than 2^50.
std::optional<std::uint64_t> quantity(std::string_view text);

class Parameters {
 public:
  // `where`: prefix of field names in errors, such as "plugins[queue-scorer].parameters"; may be "".
  Parameters(const boost::json::object& values, std::string where);

  // Each reads one field into `value`, which keeps its default if the field is absent.
  void read(std::string_view name, bool& value);
  void read(std::string_view name, std::string& value);
  void read(std::string_view name, std::int64_t& value, std::int64_t min, std::int64_t max);
  void read(std::string_view name, double& value, double min, double max);
  // "250ms", "60s", "5m", "4h", or a number of seconds.
  void read_duration(std::string_view name, std::int64_t& value_us);

  // A number or a quantity, see above; at most `max`.
  void read_quantity(std::string_view name, std::uint64_t& value, std::uint64_t max);

  // The fields of an object, by `read_fields`; strict like all others.
  void read_object(std::string_view name, const std::function<void(Parameters& fields)>& read_fields);

  // The field itself, for structures; null if absent. The call marks the field as read.
  const boost::json::value* get(std::string_view name);
  void fail(std::string_view name, std::string_view message);

  // The first error; else an error for a field that was not read.
  Result<> done() const;

 private:
  std::string path(std::string_view name) const;

  const boost::json::object& values_;
  std::string where_;
  std::vector<std::string_view> read_;
  Result<> first_error_;
};

}  // namespace octavo::fleet
