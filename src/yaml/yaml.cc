#include "yaml/yaml.h"

#include <yaml-cpp/yaml.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::uintmax_t kBytesMax = 1 << 20;
constexpr int kDepthMax = 32;

bool quoted(const YAML::Node& node) { return node.Tag() == "!"; }

// An unquoted scalar may be a number, a boolean or null.
json::value scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  bool truth = false;
  if (quoted(node)) return json::value(text);
  if (YAML::convert<bool>::decode(node, truth)) return truth;
  boost::system::error_code not_json;
  json::value value = json::parse(text, not_json);
  if (!not_json && value.is_number()) return value;
  return json::value(text);
}

Result<json::value> as_json(const YAML::Node& node, std::string_view what, int depth = 0) {
  if (depth > kDepthMax) return invalid(what, "is nested deeper than {} levels", kDepthMax);
  switch (node.Type()) {
    case YAML::NodeType::Map: {
      json::object object;
      for (const auto& entry : node) {
        TRY(object[entry.first.as<std::string>()], as_json(entry.second, what, depth + 1));
      }
      return object;
    }
    case YAML::NodeType::Sequence: {
      json::array array;
      for (const YAML::Node& item : node) {
        TRY(json::value element, as_json(item, what, depth + 1));
        array.push_back(std::move(element));
      }
      return array;
    }
    case YAML::NodeType::Scalar:
      return scalar(node);
    default:
      return nullptr;
  }
}

}  // namespace

Result<json::value> parse_yaml(const std::string& text, std::string_view what) {
  // yaml-cpp throws for invalid YAML
  try {
    return as_json(YAML::Load(text), what);
  } catch (const YAML::Exception& error) {
    return invalid(what, "is not YAML: {}", error.what());
  }
}

Result<json::value> read_yaml_file(const std::string& path, std::string_view what) {
  std::error_code unreadable;
  const std::uintmax_t bytes = std::filesystem::file_size(path, unreadable);
  if (unreadable)
    return field_failure(what, ErrorCode::not_found, "{} cannot be read: {}", path, unreadable.message());
  if (bytes > kBytesMax) return invalid(what, "{} is larger than {} bytes", path, kBytesMax);
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  auto parsed = parse_yaml(text, what);
  if (!parsed) parsed.error().message = path + " " + parsed.error().message;
  return parsed;
}

}  // namespace octavo
