// config.json, read with suspicion: every number has a range, and an error names the field and its limit.
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

// A field that is absent has its default (set_defaults). One that has none, or is null, counts as not there;
// a call without a fallback then is an error. A value of the wrong type or out of range is an error in any
// case.
class Config {
 public:
  // Parses the text of a config.json. If it nests the language model in `text_config` (multi-modal
  // checkpoints), fields are looked up there first. Fields of `overrides` take precedence; objects are
  // merged.
  static Result<Config> parse(std::string_view text, const boost::json::object& overrides = {});
  // Reads <directory>/config.json, or params.json of a folder in Mistral's own format (params_file.h).
  static Result<Config> load(const std::string& directory, const boost::json::object& overrides = {});

  // Fields from elsewhere. `names`: how that file calls the ones that it calls otherwise, for errors.
  using Names = std::map<std::string, std::string, std::less<>>;
  static Config of(boost::json::object fields, std::string file, Names names);

  // The same, where this family's fields (first) may be written under other names (second).
  Config with_names(const Names& names) const;

  // For a file with text_config: the fields outside it, without defaults.
  Config outer() const;

  // Sets the values of absent fields: a JSON object.
  void set_defaults(boost::json::object fields) { defaults_ = std::move(fields); }
  void set_defaults(std::string_view json);

  bool has(std::string_view field) const { return find(field) != nullptr; }
  bool is_list(std::string_view field) const;

  // The field as people find it: "config.json: rope_scaling.factor".
  std::string where(std::string_view field) const;

  // Whole numbers in [least, most].
  struct Range {
    std::int64_t least;
    std::int64_t most;
  };
  Result<int> integer(std::string_view field, Range range, std::optional<int> fallback = {}) const;
  // Finite numbers in [least, most].
  struct RealRange {
    double least;
    double most;
  };
  Result<double> number(std::string_view field, RealRange range, std::optional<double> fallback = {}) const;
  Result<bool> boolean(std::string_view field, std::optional<bool> fallback = {}) const;
  Result<std::string> text(std::string_view field, std::optional<std::string> fallback = {}) const;
  // A list of exactly `count` finite numbers in the range.
  Result<std::vector<double>> numbers(std::string_view field, std::size_t count, RealRange range) const;
  // A list of whole numbers; empty when it is not there.
  Result<std::vector<int>> integers(std::string_view field, Range range) const;
  // A list of lists of two whole numbers; empty when it is not there.
  Result<std::vector<std::array<int, 2>>> pairs(std::string_view field, Range range) const;
  // A list of strings; empty when it is not there.
  Result<std::vector<std::string>> texts(std::string_view field) const;

  // The strings of an object whose members are named "0", "1" ..; empty when it is not there.
  Result<std::vector<std::string>> numbered_texts(std::string_view field) const;

  // A nested object, looked up with the rules above; its errors say "rope_scaling.factor". nullopt when it is
  // not there.
  Result<std::optional<Config>> object(std::string_view field) const;
  // The objects of a list; empty when it is not there.
  Result<std::vector<Config>> list(std::string_view field) const;
  // The objects that are the values of a nested object, at most 64; none when it is not there.
  Result<std::vector<Config>> objects(std::string_view field) const;

 private:
  const boost::json::value* find(std::string_view field) const;
  std::string path_of(std::string_view field) const { return path_ + std::string(field); }

  boost::json::object fields_;
  boost::json::object outer_;  // the rest of a file with text_config
  boost::json::object defaults_;
  std::string path_;
  std::string file_ = "config.json";
  Names names_;
};

}  // namespace octavo
