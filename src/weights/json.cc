#include "weights/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json_events.h"
#include "tensor/mapped_file.h"

namespace octavo {
namespace {

namespace json = boost::json;

struct KeyCheck : JsonEvents {
  std::vector<std::set<std::string, std::less<>>> open_objects;
  std::string key;
  std::optional<std::string> duplicate;

  bool on_object_begin(error_code&) {
    open_objects.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, error_code&) {
    open_objects.pop_back();
    return true;
  }
  bool on_key_part(string_view part, std::size_t, error_code&) {
    key.append(part.data(), part.size());
    return true;
  }
  bool on_key(string_view part, std::size_t, error_code& ec) {
    key.append(part.data(), part.size());
    const bool fresh = open_objects.back().insert(key).second;
    if (!fresh) {
      duplicate = key;
      ec = json::make_error_code(json::error::syntax);
    }
    key.clear();
    return fresh;
  }
};

}  // namespace

Result<json::value> parse_json(std::string_view text, std::string_view what, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return failure(ErrorCode::corrupt, "{}: the JSON text has {} bytes, but the limit is {}", what,
                   text.size(), limits.bytes);
  }
  json::parse_options options;
  options.max_depth = limits.depth;
  boost::system::error_code ec;
  json::basic_parser<KeyCheck> check(options);
  const std::size_t read = check.write_some(false, text.data(), text.size(), ec);
  if (const auto& key = check.handler().duplicate) {
    return failure(ErrorCode::corrupt, "{}: the key \"{}\" occurs twice", what, *key);
  }
  json::value tree;
  if (!ec) tree = json::parse(json::string_view(text.data(), text.size()), ec, {}, options);
  if (!ec) return tree;
  // Python writes NaN and Infinity, which are not JSON.
  const std::string_view rest = text.substr(std::min(read, text.size()));
  for (const std::string_view word : {"NaN", "Infinity"})
    if (rest.starts_with(word))
      return failure(ErrorCode::corrupt, "{}: not valid JSON: JSON has no number {} (byte {})", what, word,
                     read);
  return failure(ErrorCode::corrupt, "{}: not valid JSON near byte {}: {}", what, read, ec.message());
}

Result<json::value> read_json_file(const std::string& path, const JsonLimits& limits) {
  TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, limits);
}

}  // namespace octavo
