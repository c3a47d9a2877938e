// Reads config.json for the families (families/). The file is not trusted: every number has a range, and an
// error names the field and the limit.
#pragma once

#include <array>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

// Fields of a config.json. A missing field has the value of set_defaults(). If that is missing too, or if the
// field is null, the getter returns the caller's fallback; without a fallback, the result is an error. A
// value of a wrong type or out of range is always an error.
class Config {
 public:
  // Parses the text of a config.json. If the file has `text_config` (the language model of a multi-modal
  // checkpoint), fields are first looked up there. Fields of `overrides` replace fields of the file; nested
  // objects are merged.
  static Result<Config> parse(std::string_view text, const boost::json::object& overrides = {});
  // Reads <directory>/config.json, or params.json if the folder has Mistral's format (params_file.h).
  static Result<Config> load(const std::string& directory, const boost::json::object& overrides = {});

  // Makes a Config from another file's fields, after they were renamed as in config.json. `names` maps
  // renamed fields to their names in the file, for error messages.
  using Names = std::map<std::string, std::string, std::less<>>;
  static Config of(boost::json::object fields, std::string file, Names names);

  // Returns a copy in which the file may have a field (first) under another name (second).
  Config with_names(const Names& names) const;

  // Returns a copy in which the fields of `other` replace fields of the file.
  Config with_fields_of(const Config& other) const;

  // Returns a copy without this field.
  Config without(std::string_view field) const;

  // Returns the fields outside text_config, without defaults. The file must have text_config.
  Config outer() const;

  // Sets the values of missing fields. `fields` is a JSON object.
  void set_defaults(boost::json::object fields) { defaults_ = std::move(fields); }
  void set_defaults(std::string_view json);

  bool has(std::string_view field) const { return find(field) != nullptr; }
  bool is_list(std::string_view field) const;

  // Returns the full name of a field for error messages, such as "config.json: rope_scaling.factor".
  std::string where(std::string_view field) const;

  // Allowed integers: [least, most].
  struct Range {
    std::int64_t least;
    std::int64_t most;
  };
  Result<int> integer(std::string_view field, Range range, std::optional<int> fallback = {}) const;
  // Allowed finite numbers: [least, most].
  struct RealRange {
    double least;
    double most;
  };
  Result<double> number(std::string_view field, RealRange range, std::optional<double> fallback = {}) const;
  Result<bool> boolean(std::string_view field, std::optional<bool> fallback = {}) const;
  Result<std::string> text(std::string_view field, std::optional<std::string> fallback = {}) const;
  // Returns a list of exactly `count` finite numbers in the range.
  Result<std::vector<double>> numbers(std::string_view field, std::size_t count, RealRange range) const;
  // integers(), pairs() and texts() return an empty list if the field is missing.
  Result<std::vector<int>> integers(std::string_view field, Range range) const;
  Result<std::vector<std::array<int, 2>>> pairs(std::string_view field, Range range) const;
  Result<std::vector<std::string>> texts(std::string_view field) const;

  // Returns the strings of an object whose fields are "0", "1" ..
  Result<std::vector<std::string>> numbered_texts(std::string_view field) const;

  // Returns a nested object, or nullopt if the field is missing. Errors in the object have the full name
  // ("rope_scaling.factor").
  Result<std::optional<Config>> object(std::string_view field) const;
  // list() and objects() return an empty list if the field is missing.
  Result<std::vector<Config>> list(std::string_view field) const;
  // Returns the values of a nested object whose fields are all objects. The limit is 64 fields.
  Result<std::vector<Config>> objects(std::string_view field) const;

 private:
  const boost::json::value* find(std::string_view field) const;
  std::string path_of(std::string_view field) const { return path_ + std::string(field); }
  template <class T, class Read>
  Result<T> one(std::string_view field, const std::optional<T>& fallback, Read read) const;
  template <class T, class Read>
  Result<std::vector<T>> items(std::string_view field, std::string_view what, Read read) const;

  boost::json::object fields_;
  boost::json::object outer_;  // fields outside text_config
  boost::json::object defaults_;
  std::string path_;
  std::string file_ = "config.json";
  Names names_;
};

}  // namespace octavo
