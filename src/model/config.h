// Reads config.json. The file is not trusted: every number has a range, and an error names the field and the
// limit.
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

// Fields of a config.json. A missing field has the value of set_defaults(). If a field is null, or missing
// without a default, it has the caller's fallback; without a fallback it is an error. A value of a wrong type
// or out of range is always an error.
class Config {
 public:
  // Parses the text of a config.json. If the file has `text_config` (the language model of a multi-modal
  // checkpoint), fields are first looked up there. Fields of `overrides` have priority; objects are merged.
  static Result<Config> parse(std::string_view text, const boost::json::object& overrides = {});
  // Reads <directory>/config.json, or params.json if the folder has Mistral's format (params_file.h).
  static Result<Config> load(const std::string& directory, const boost::json::object& overrides = {});

  // Replaces the fields by those of another file. names: names of fields in that file, for error messages,
  // where they differ.
  using Names = std::map<std::string, std::string, std::less<>>;
  static Config of(boost::json::object fields, std::string file, Names names);

  // Returns a copy in which fields (first) may also have another name in the file (second).
  Config with_names(const Names& names) const;

  // Returns the fields outside text_config, without defaults; for a file with text_config.
  Config outer() const;

  // Sets the values of missing fields, as a JSON object.
  void set_defaults(boost::json::object fields) { defaults_ = std::move(fields); }
  void set_defaults(std::string_view json);

  bool has(std::string_view field) const { return find(field) != nullptr; }
  bool is_list(std::string_view field) const;

  // Returns the full name of a field for messages: "config.json: rope_scaling.factor".
  std::string where(std::string_view field) const;

  // Range [least, most] of integers.
  struct Range {
    std::int64_t least;
    std::int64_t most;
  };
  Result<int> integer(std::string_view field, Range range, std::optional<int> fallback = {}) const;
  // Range [least, most] of finite numbers.
  struct RealRange {
    double least;
    double most;
  };
  Result<double> number(std::string_view field, RealRange range, std::optional<double> fallback = {}) const;
  Result<bool> boolean(std::string_view field, std::optional<bool> fallback = {}) const;
  Result<std::string> text(std::string_view field, std::optional<std::string> fallback = {}) const;
  // Returns a list of exactly `count` finite numbers in the range.
  Result<std::vector<double>> numbers(std::string_view field, std::size_t count, RealRange range) const;
  // Returns a list of integers; empty if the field is missing.
  Result<std::vector<int>> integers(std::string_view field, Range range) const;
  // Returns a list of pairs of integers; empty if the field is missing.
  Result<std::vector<std::array<int, 2>>> pairs(std::string_view field, Range range) const;
  // Returns a list of strings; empty if the field is missing.
  Result<std::vector<std::string>> texts(std::string_view field) const;

  // Returns the strings of an object with the fields "0", "1" ..; empty if the field is missing.
  Result<std::vector<std::string>> numbered_texts(std::string_view field) const;

  // Returns a nested object, read with the same rules; nullopt if missing. Errors in it contain the full name
  // ("rope_scaling.factor").
  Result<std::optional<Config>> object(std::string_view field) const;
  // Returns the objects of a list; empty if the field is missing.
  Result<std::vector<Config>> list(std::string_view field) const;
  // Returns the objects that are the values of a nested object, at most 64; empty if the field is missing.
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
