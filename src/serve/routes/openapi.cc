// /openapi.json: what bodies may say. openapi.json describes every route; shown is what this server has of
// them, with the model's limits.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "serve/routes/handlers.h"
#include "serve/routes/routes.h"

namespace octavo {

// Made from openapi.json by cmake/embed.cmake.
namespace openapi_files {
extern const std::string_view document;
}

namespace routes {

http::Response api_document(Service& service, std::string_view) {
  namespace json = boost::json;
  json::object document = json::parse(openapi_files::document).as_object();
  document.at("info").as_object()["version"] = service.options.version;
  json::object& schemas = document.at("components").as_object().at("schemas").as_object();
  schemas.at("TokenId").as_object()["maximum"] = service.engine_info.vocab_size - 1;
  const auto first_kind = [&](std::string_view name) -> json::object& {
    return schemas.at(name).at("anyOf").as_array().front().as_object();
  };
  first_kind("MaxTokens")["maximum"] = service.options.rules.max_model_len;
  json::array& models = first_kind("Model").at("enum").as_array();
  for (const std::string& name : service.options.rules.model_names) models.emplace_back(name);
  for (const AdapterCard& card : service.adapters->all()) models.emplace_back(card.name);

  const std::vector<std::string_view> there = route_paths(service.options);
  json::object paths;
  for (const auto& [path, item] : document.at("paths").as_object())
    if (std::ranges::any_of(there, [&](std::string_view route) {
          return path == route || (route.ends_with('/') && std::string_view(path).starts_with(route));
        }))
      paths[path] = item;
  document["paths"] = std::move(paths);
  if (const std::string& root = service.options.root_path; !root.empty())
    document["servers"] = json::array{json::object{{"url", root}}};
  return {.body = json::serialize(document)};
}

}  // namespace routes
}  // namespace octavo
