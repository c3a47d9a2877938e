// Reads the models that an engine serves from its `GET /v1/models` page.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct ModelCards {
  std::vector<std::string> models = {};           // base models
  std::vector<std::string> adapters = {};         // LoRA adapters: model cards with a parent
  std::map<std::string, std::string> cards = {};  // JSON of each card, by name
};

inline constexpr std::size_t kModelsMax = 10'000;  // maximum number of models of one endpoint; further ones
                                                   // are ignored

// nullopt: the page is not a list of model cards.
std::optional<ModelCards> read_model_cards(std::string_view page);

}  // namespace octavo::fleet
