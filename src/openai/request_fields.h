// Reads the fields of a JSON request and checks their types and ranges. Errors contain the name of
// the field and its limit.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/exact_json.h"

namespace octavo::openai {

inline constexpr std::size_t kJsonDepthMax = kExactJsonDepthMax;

// Parses a request body, which must be one JSON object in an encoding that utf8_json reads. Otherwise returns
// invalid_argument with the position of the error.
Result<boost::json::object> parse_body(std::string_view body);

// Reads the fields of one JSON object. Each function sets `out` if the field exists and is not null (OpenAI's
// clients send null to request the default). Returns an error with the field's name if the type or the range
// is wrong.
class Fields {
 public:
  // `path` is the prefix of the field names in errors, such as "stream_options." or "messages[3].".
  explicit Fields(const boost::json::object& object, std::string path = {})
      : object_(&object), path_(std::move(path)) {}

  Result<> boolean(std::string_view name, bool& out);
  Result<> number(std::string_view name, double& out);  // infinity and NaN are errors
  Result<> integer(std::string_view name, int& out, int min = std::numeric_limits<int>::min(),
                   int max = std::numeric_limits<int>::max());
  Result<> integer(std::string_view name, std::optional<int>& out, int min = std::numeric_limits<int>::min(),
                   int max = std::numeric_limits<int>::max());
  Result<> integer64(std::string_view name, std::int64_t& out);
  Result<> integer64(std::string_view name, std::optional<std::int64_t>& out);
  Result<> text(std::string_view name, std::string& out);
  Result<> integers(std::string_view name, std::vector<std::int32_t>& out);
  Result<> texts(std::string_view name, std::vector<std::string>& out);
  Result<> one_or_more_texts(std::string_view name, std::vector<std::string>& out);

  // Returns the field's value; nullptr if it is absent or null.
  const boost::json::value* any(std::string_view name);
  Result<const boost::json::object*> object(std::string_view name);
  Result<const boost::json::array*> array(std::string_view name);

  // Marks these fields as read, so that unread() does not return them.
  void accept(std::initializer_list<std::string_view> names);
  // Returns an error with this reason, unless the field is absent, null or equal to `harmless`.
  Result<> refuse(std::string_view name, std::string_view reason,
                  const boost::json::value& harmless = nullptr);

  // Returns the names of the fields that none of the functions above has read.
  std::vector<std::string> unread() const;

  std::string full_name(std::string_view name) const { return path_ + std::string(name); }

 private:
  const boost::json::object* object_;
  std::string path_;
  std::unordered_set<std::string_view> read_;
};

// Reads an integer in [min, max]. As in vLLM, the value is a JSON number (16 or 16.0) or a string
// ("16").
Result<std::int64_t> integer_in(const boost::json::value& value, std::string_view field, std::int64_t min,
                                std::int64_t max);

}  // namespace octavo::openai
