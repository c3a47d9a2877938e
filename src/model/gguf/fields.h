// Fields of config.json, while they are made from the metadata and tensors of a GGUF file.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/config.h"
#include "weights/gguf.h"

namespace octavo {

struct GgufArchitecture;

constexpr std::size_t kGgufLayersMax = 1024;

// Keys whose value may be a list with one number per layer.
constexpr std::string_view kGgufHeads = "attention.head_count";
constexpr std::string_view kGgufKeyHeads = "attention.head_count_kv";
constexpr std::string_view kGgufHidden = "feed_forward_length";

// The fields so far, and access to the file. A key in an argument has no architecture prefix.
class GgufFields {
 public:
  GgufFields(const Gguf& gguf, const GgufArchitecture& architecture)
      : gguf_(gguf), architecture_(architecture) {}

  const Gguf& gguf() const { return gguf_; }
  const GgufArchitecture& architecture() const { return architecture_; }
  const std::string& what() const { return gguf_.metadata.what(); }  // the file's name, for errors

  // The functions from here on read the file. key() returns the full name of a key.
  std::string key(std::string_view name) const;
  Result<std::optional<double>> stored(std::string_view key_name) const;
  Result<std::optional<bool>> stored_boolean(std::string_view key_name) const;
  // Returns a list with one number per layer. Returns corrupt if the list is missing or longer than
  // kGgufLayersMax.
  Result<std::vector<double>> layer_numbers(std::string_view key_name) const;
  // Number of layers in a key's value, or 0 if the key is missing.
  Result<std::int64_t> layer_count(std::string_view key_name) const;
  // Returns whether at least one layer has the tensor.
  bool some_have(std::string_view tensor) const;

  // operator[] sets a missing field to null; find() returns nullptr for it.
  boost::json::value& operator[](std::string_view field) { return fields_[text_of(field)]; }
  boost::json::value* find(std::string_view field) { return fields_.if_contains(text_of(field)); }
  const boost::json::value* find(std::string_view field) const { return fields_.if_contains(text_of(field)); }
  std::optional<double> number(std::string_view field) const;
  double head_dim() const;
  // Sets the field if `value` exists. Later errors about the field name the key `key_name`.
  void set(std::string_view field, std::optional<double> value, std::string_view key_name);
  // Does the same as set(), but later errors name `source`.
  void set_from(std::string_view field, std::optional<double> value, std::string source);
  // Copies values from keys (first) to fields (second).
  Result<> copy(std::initializer_list<std::pair<std::string_view, std::string_view>> keys_and_fields);

  // Stores the list of numbers per layer under its key. Returns the largest number.
  Result<double> keep_list(std::string_view key_name);
  // Returns the stored list, or nullptr if the file has no such list.
  const std::vector<double>* list(std::string_view key_name) const;
  // Returns the layer's number in the stored list, or the value of the field if there is no list.
  std::optional<double> of_layer(std::string_view key_name, std::size_t layer, std::string_view field) const;

  Config config() &&;

  static boost::json::string_view text_of(std::string_view text) { return {text.data(), text.size()}; }

 private:
  const Gguf& gguf_;
  const GgufArchitecture& architecture_;
  boost::json::object fields_;
  std::map<std::string_view, std::vector<double>> lists_;  // stored lists by key
  Config::Names names_;
};

}  // namespace octavo
