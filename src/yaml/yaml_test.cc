#include "yaml/yaml.h"

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

namespace octavo {
namespace {

std::string as_json(const std::string& text) {
  const auto parsed = parse_yaml(text, "config");
  return parsed ? boost::json::serialize(*parsed) : parsed.error().field + ": " + parsed.error().message;
}

TEST(Yaml, ScalarsAreWhatTheyLookLike) {
  EXPECT_EQ(as_json("{a: 1, b: 0.5, c: yes, d: text, e: '1', f: , g: [x, 2]}"),
            R"({"a":1,"b":5E-1,"c":true,"d":"text","e":"1","f":null,"g":["x",2]})");
  EXPECT_EQ(as_json(""), "null");
}

TEST(Yaml, MistakesNameTheField) {
  EXPECT_TRUE(as_json("a: [").starts_with("config: is not YAML")) << as_json("a: [");
  EXPECT_EQ(as_json(std::string(40, '[') + std::string(40, ']')), "config: is nested deeper than 32 levels");
  EXPECT_EQ(read_yaml_file("/nowhere", "config").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace octavo
