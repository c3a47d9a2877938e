#include "model/gguf/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/gguf/architectures.h"

namespace octavo {

std::string GgufFields::key(std::string_view name) const {
  return fmt::format("{}.{}", architecture_.name, name);
}

Result<std::optional<double>> GgufFields::stored(std::string_view key_name) const {
  return gguf_.metadata.number(key(key_name));
}

Result<std::optional<bool>> GgufFields::stored_boolean(std::string_view key_name) const {
  return gguf_.metadata.boolean(key(key_name));
}

Result<std::vector<double>> GgufFields::layer_numbers(std::string_view key_name) const {
  const std::string name = key(key_name);
  TRY(std::vector<double> items, gguf_.metadata.numbers(name));
  if (items.empty() || items.size() > kGgufLayersMax)
    return field_failure(name, ErrorCode::corrupt,
                         "{}: {} has {} items, but must have one for each of 1 to {} layers", what(), name,
                         items.size(), kGgufLayersMax);
  return items;
}

Result<std::int64_t> GgufFields::layer_count(std::string_view key_name) const {
  TRY(const auto layers, gguf_.metadata.count(key(key_name), kGgufLayersMax));
  return layers.value_or(0);
}

bool GgufFields::some_have(std::string_view tensor) const {
  return std::ranges::any_of(gguf_.tensors, [&](const StoredTensor& one) {
    return one.name.starts_with("blk.") && one.name.ends_with(fmt::format(".{}", tensor));
  });
}

std::optional<double> GgufFields::number(std::string_view field) const {
  const auto* value = find(field);
  return value != nullptr && value->is_double() ? std::optional(value->as_double()) : std::nullopt;
}

double GgufFields::head_dim() const {
  return number("head_dim")
      .value_or(number("hidden_size").value_or(0) / std::max(number("num_attention_heads").value_or(1), 1.0));
}

void GgufFields::set(std::string_view field, std::optional<double> value, std::string_view key_name) {
  set_from(field, value, key(key_name));
}

void GgufFields::set_from(std::string_view field, std::optional<double> value, std::string source) {
  if (value) (*this)[field] = *value;
  names_.emplace(field, std::move(source));
}

Result<> GgufFields::copy(
    std::initializer_list<std::pair<std::string_view, std::string_view>> keys_and_fields) {
  for (const auto& [key_name, field] : keys_and_fields) {
    TRY(const auto value, stored(key_name));
    set(field, value, key_name);
  }
  return {};
}

Result<double> GgufFields::keep_list(std::string_view key_name) {
  TRY(std::vector<double> items, layer_numbers(key_name));
  const double most = std::ranges::max(items);
  lists_.emplace(key_name, std::move(items));
  return most;
}

const std::vector<double>* GgufFields::list(std::string_view key_name) const {
  const auto found = lists_.find(key_name);
  return found != lists_.end() ? &found->second : nullptr;
}

std::optional<double> GgufFields::of_layer(std::string_view key_name, std::size_t layer,
                                           std::string_view field) const {
  const std::vector<double>* items = list(key_name);
  return items != nullptr && layer < items->size() ? (*items)[layer] : number(field);
}

Config GgufFields::config() && { return Config::of(std::move(fields_), what(), std::move(names_)); }

}  // namespace octavo
