// Reads the model names of an engine from its response to `GET /v1/models`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct ModelCards {
  std::vector<std::string> models = {};
  std::vector<std::string> adapters = {};         // names of LoRA adapters: model cards with a `parent`
  std::map<std::string, std::string> cards = {};  // model name -> JSON of the model card
};

// maximum number of models of one endpoint; further models are ignored
inline constexpr std::size_t kModelsMax = 10'000;

// Returns nullopt if the page is not a list of model cards.
std::optional<ModelCards> read_model_cards(std::string_view page);

}  // namespace octavo::fleet
