#include "openai/anthropic_client.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <ctime>
#include <utility>

#include "openai/anthropic_errors.h"
#include "openai/routes.h"

namespace octavo::anthropic {

namespace json = boost::json;

namespace {

constexpr std::string_view kIdHeader = "request-id";

// Formats seconds since 1970 as RFC 3339. Other engines may send a number that is out of range.
std::string date_of(const json::value* seconds) {
  constexpr std::int64_t kYear9999 = 253'402'300'799;
  const std::int64_t given = seconds && seconds->is_int64() ? seconds->get_int64() : 0;
  const auto time = static_cast<std::time_t>(std::clamp<std::int64_t>(given, 0, kYear9999));
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time));
}

json::object model_of(const json::object& card) {
  const json::value* id = card.if_contains("id");
  const json::value name = id && id->is_string() ? *id : json::value("");
  json::object out{{"type", "model"},
                   {"id", name},
                   {"display_name", name},
                   {"created_at", date_of(card.if_contains("created"))}};
  // Prompt and answer share the context, so each of them has this limit.
  if (const json::value* context = card.if_contains("max_model_len"); context && context->is_int64()) {
    out["max_input_tokens"] = *context;
    out["max_tokens"] = *context;
  }
  return out;
}

json::object list_of(const json::object& cards) {
  json::array data;
  if (const json::value* given = cards.if_contains("data"); given && given->is_array())
    for (const json::value& card : given->get_array())
      if (card.is_object()) data.emplace_back(model_of(card.get_object()));
  json::object out{{"has_more", false}, {"first_id", nullptr}, {"last_id", nullptr}};
  if (!data.empty()) {
    out["first_id"] = data.front().at("id");
    out["last_id"] = data.back().at("id");
  }
  out["data"] = std::move(data);
  return out;
}

json::object error_of(json::object body, int status) {
  if (const json::value* type = body.if_contains("type"); type && *type == "error") return body;
  const json::value* error = body.if_contains("error");
  const json::value* message =
      error && error->is_object() ? error->get_object().if_contains("message") : nullptr;
  return error_object(status, message && message->is_string() ? std::string_view(message->get_string()) : "");
}

bool shows_models(const openai::Route& route) {
  return route.path == "/v1/models" || route.path == "/v1/models/";
}

// Returns the `object` field of OpenAI's responses, or "" if it is missing.
std::string_view type_of(const json::object& body) {
  const json::value* type = body.if_contains("object");
  return type && type->is_string() ? std::string_view(type->get_string()) : "";
}

}  // namespace

bool is_client(std::string_view path, const http::Headers& headers) {
  const openai::Route* route = openai::find_route(path);
  if (!route) return false;
  return route->protocol == openai::Protocol::anthropic ||
         (shows_models(*route) && headers.find("anthropic-version").has_value());
}

void amend(http::Response& response, std::string_view path, std::string_view request_id) {
  if (!response.headers.find(kIdHeader))
    response.headers.add(std::string(kIdHeader), std::string(request_id));
  const openai::Route* route = openai::find_route(path);
  const bool failed = response.status >= 400;
  if (!failed && !(route && shows_models(*route))) return;
  boost::system::error_code broken;
  const json::value read = json::parse(response.body, broken);
  if (broken || !read.is_object()) return;  // the body of an event stream is not JSON
  json::object body = read.get_object();
  if (failed) {
    body = error_of(std::move(body), response.status);
    body.emplace("request_id", request_id);
  } else if (type_of(body) == "list") {
    body = list_of(body);
  } else if (type_of(body) == "model") {
    body = model_of(body);
  }
  response.body = json::serialize(body);
}

void amend_answer(http::Exchange& exchange, std::string_view path, std::string request_id) {
  exchange.set_request_header("X-Request-Id", request_id);
  exchange.amend([path = std::string(path), id = std::move(request_id)](http::Response& response) {
    amend(response, path, id);
  });
}

}  // namespace octavo::anthropic
