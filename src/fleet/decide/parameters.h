// Reads the parameters of a plugin or policy. A field with a wrong type, a value out of range or an unknown
// name is an error.
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

// Converts a duration in Go's format, such as "1.5s" or "1h30m" (units ns, us, ms, s, m, h), to
// microseconds.
std::optional<double> duration_us(std::string_view text);

// Parses a Kubernetes quantity, such as "4Gi". Returns nullopt if the text is invalid or the value exceeds
// 2^50.
std::optional<std::uint64_t> quantity(std::string_view text);

class Parameters {
 public:
  // `where` is the prefix of field names in errors, such as "plugins[queue-scorer].parameters". It may be
  // "".
  Parameters(const boost::json::object& values, std::string where);

  // Each read function reads one field into `value`. If the field is missing, `value` does not change.
  void read(std::string_view name, bool& value);
  void read(std::string_view name, std::string& value);
  void read(std::string_view name, std::int64_t& value, std::int64_t min, std::int64_t max);
  void read(std::string_view name, double& value, double min, double max);
  // Reads a duration such as "250ms" or "1h30m", or a number of seconds.
  void read_duration(std::string_view name, std::int64_t& value_us);

  // Reads a number or a Kubernetes quantity of at most `max`.
  void read_quantity(std::string_view name, std::uint64_t& value, std::uint64_t max);

  // Reads the fields of an object with `read_fields`. Unknown fields are errors.
  void read_object(std::string_view name, const std::function<void(Parameters& fields)>& read_fields);

  // Marks the field as read and returns it. Returns null if it is missing.
  const boost::json::value* get(std::string_view name);
  void fail(std::string_view name, std::string_view message);

  // Returns the first error of a read function. If there is none, returns an error for a field that no
  // function has read, because such a field is unknown.
  Result<> done() const;

 private:
  std::string path(std::string_view name) const;

  const boost::json::object& values_;
  std::string where_;
  std::vector<std::string_view> read_;
  Result<> first_error_;
};

}  // namespace octavo::fleet
