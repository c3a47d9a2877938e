// Reads an engine's models from its page `GET /v1/models`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct ModelCards {
  std::vector<std::string> models = {};           // names of base models
  std::vector<std::string> adapters = {};         // names of LoRA adapters, whose model cards have a parent
  std::map<std::string, std::string> cards = {};  // JSON of each model card, by name
};

// maximum number of models of an endpoint; further ones are ignored
inline constexpr std::size_t kModelsMax = 10'000;

// Returns nullopt if the page is not a list of model cards.
std::optional<ModelCards> read_model_cards(std::string_view page);

}  // namespace octavo::fleet
