#include "fleet/observe/model_cards.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace octavo::fleet {

std::optional<ModelCards> read_model_cards(std::string_view page) {
  namespace json = boost::json;
  boost::system::error_code error;
  const json::value parsed = json::parse(page, error);
  const auto* data = !error && parsed.is_object() ? parsed.get_object().if_contains("data") : nullptr;
  if (!data || !data->is_array()) return std::nullopt;
  ModelCards found;
  for (const json::value& card : data->get_array()) {
    const auto* name = card.is_object() ? card.get_object().if_contains("id") : nullptr;
    if (!name || !name->is_string() || found.cards.size() == kModelsMax) continue;
    const auto* parent = card.get_object().if_contains("parent");
    auto& names = parent && parent->is_string() ? found.adapters : found.models;
    names.emplace_back(name->get_string());
    found.cards[names.back()] = json::serialize(card);
  }
  return found;
}

}  // namespace octavo::fleet
