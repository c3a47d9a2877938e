#include "fleet/observe/model_cards.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace octavo::fleet {

std::optional<ModelCards> read_model_cards(std::string_view page) {
  namespace json = boost::json;
  boost::system::error_code error;
  json::value parsed = json::parse(page, error);
  auto* data = !error && parsed.is_object() ? parsed.get_object().if_contains("data") : nullptr;
  if (!data || !data->is_array()) return std::nullopt;
  // State of a model in one replica, which changes with each request.
  constexpr std::array<std::string_view, 5> kOfReplica{"state", "error", "kv_cache_kept", "unfinished",
                                                       "last_use"};
  ModelCards found;
  for (json::value& card : data->get_array()) {
    const auto* name = card.is_object() ? card.get_object().if_contains("id") : nullptr;
    if (!name || !name->is_string() || found.cards.size() == kModelsMax) continue;
    const auto* parent = card.get_object().if_contains("parent");
    auto& names = parent && parent->is_string() ? found.adapters : found.models;
    names.emplace_back(name->get_string());
    for (const std::string_view field : kOfReplica) card.get_object().stable_erase(field);
    found.cards[names.back()] = json::serialize(card);
  }
  return found;
}

}  // namespace octavo::fleet
