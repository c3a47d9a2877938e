// The fields of config.json that a GGUF file's metadata and tensors make, while they are made.
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

// Keys of which a file may have a list, of numbers of each layer.
constexpr std::string_view kGgufHeads = "attention.head_count";
constexpr std::string_view kGgufKeyHeads = "attention.head_count_kv";
constexpr std::string_view kGgufHidden = "feed_forward_length";

// Keys are named without the architecture's name before them.
class GgufFields {
 public:
  GgufFields(const Gguf& gguf, const GgufArchitecture& architecture)
      : gguf_(gguf), architecture_(architecture) {}

  const Gguf& gguf() const { return gguf_; }
  const GgufArchitecture& architecture() const { return architecture_; }
  const std::string& what() const { return gguf_.metadata.what(); }  // the file's name, for errors

  // Contents of the file. The full name of a key:
  std::string key(std::string_view name) const;
  Result<std::optional<double>> stored(std::string_view key_name) const;
  Result<std::optional<bool>> stored_boolean(std::string_view key_name) const;
  // A list of numbers of layers. Errors: corrupt, where it has none, or more than kGgufLayersMax.
  Result<std::vector<double>> layer_numbers(std::string_view key_name) const;
  // Number of layers in a key; 0 if the key is missing.
  Result<std::int64_t> layer_count(std::string_view key_name) const;
  // Whether some layer has the tensor.
  bool some_have(std::string_view tensor) const;

  // The fields made so far.
  boost::json::value& operator[](std::string_view field) { return fields_[text_of(field)]; }
  boost::json::value* find(std::string_view field) { return fields_.if_contains(text_of(field)); }
  const boost::json::value* find(std::string_view field) const { return fields_.if_contains(text_of(field)); }
  std::optional<double> number(std::string_view field) const;
  double head_dim() const;
  // Sets the field if there is a value; errors of the field name the key.
  void set(std::string_view field, std::optional<double> value, std::string_view key_name);
  // Likewise. Errors name `source`.
  void set_from(std::string_view field, std::optional<double> value, std::string source);
  // Copies values of keys to the fields with the same meaning.
  Result<> copy(std::initializer_list<std::pair<std::string_view, std::string_view>> keys_and_fields);

  // Keeps the numbers of layers under a key. Returns the greatest.
  Result<double> keep_list(std::string_view key_name);
  // Values of all layers, or nullptr if the file has no list.
  const std::vector<double>* list(std::string_view key_name) const;
  // The number of a layer, or, where there is no list, the field.
  std::optional<double> of_layer(std::string_view key_name, std::size_t layer, std::string_view field) const;

  Config config() &&;

  static boost::json::string_view text_of(std::string_view text) { return {text.data(), text.size()}; }

 private:
  const Gguf& gguf_;
  const GgufArchitecture& architecture_;
  boost::json::object fields_;
  std::map<std::string_view, std::vector<double>> lists_;  // by key
  Config::Names names_;
};

}  // namespace octavo
