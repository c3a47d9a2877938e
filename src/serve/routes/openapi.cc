// /openapi.json describes this server's routes, with the model's limits. The file openapi.json contains all
// routes; the table in request/sampling_fields.h contains the sampling fields.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "serve/openai/sampling_reader.h"
#include "serve/routes/handlers.h"
#include "serve/routes/refused.h"
#include "serve/routes/routes.h"

namespace octavo {

// cmake/embed.cmake generates this string from openapi.json.
namespace openapi_files {
extern const std::string_view document;
}

namespace {

namespace json = boost::json;

// Name of a placeholder property, which is replaced by the sampling fields. If its value is {"messages":
// true}, only by those of /v1/messages.
constexpr std::string_view kSamplingFields = "x-sampling-fields";

json::object with_sampling_fields(const json::object& properties) {
  json::object out;
  for (const auto& [name, schema] : properties) {
    if (name != kSamplingFields) {
      out[name] = schema;
      continue;
    }
    const bool messages = schema.as_object().contains("messages");
    for (const SamplingField& field : sampling_fields())
      if (field.messages || !messages)
        out[field.name] = json::object{{"$ref", fmt::format("#/components/schemas/{}", field.name)}};
  }
  return out;
}

void add_sampling_fields(json::value& value) {
  if (json::array* items = value.if_array())
    for (json::value& item : *items) add_sampling_fields(item);
  json::object* object = value.if_object();
  if (!object) return;
  if (object->contains(kSamplingFields)) *object = with_sampling_fields(*object);
  for (auto& [name, item] : *object) add_sampling_fields(item);
}

}  // namespace

json::object api_of_all_routes() {
  json::object document = json::parse(openapi_files::document).as_object();
  json::object& schemas = document.at("components").as_object().at("schemas").as_object();
  for (auto& [name, schema] : schemas) add_sampling_fields(schema);
  for (const SamplingField& field : sampling_fields()) schemas[field.name] = openai::sampling_schema(field);
  json::object refused;
  for (const routes::RefusedRoute& route : routes::refused_routes()) refused[route.path] = route.reason;
  document["x-refused-routes"] = std::move(refused);
  return document;
}

namespace routes {

http::Response api_document(Service& service, std::string_view) {
  json::object document = api_of_all_routes();
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

  const std::vector<std::string_view> served = route_paths(service.options);
  json::object paths;
  for (const auto& [path, item] : document.at("paths").as_object())
    if (std::ranges::any_of(served, [&](std::string_view route) {
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
