// /v1/conversations: OpenAI's conversations, stored in memory.
#include <boost/json/serialize.hpp>
#include <optional>
#include <utility>

#include "base/exact_json.h"
#include "base/quoted_text.h"
#include "openai/errors.h"
#include "openai/request_fields.h"
#include "serve/openai/conversation_store.h"
#include "serve/routes/handlers.h"
#include "serve/routes/item_page.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

constexpr std::size_t kItemsAtOnceMax = 20;  // limit in OpenAI's API

// The parts of a path after /v1/conversations: /ID, /ID/items or /ID/items/ITEM.
struct ConversationPath {
  std::string id;
  bool items = false;
  std::string item;
};

std::optional<ConversationPath> parse_conversation_path(std::string_view path) {
  constexpr std::string_view kRoute = "/v1/conversations", kItems = "/items";
  path.remove_prefix(path.rfind(kRoute) + kRoute.size());
  ConversationPath parsed;
  if (path.empty()) return parsed;
  path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  parsed.id = path.substr(0, slash);
  if (slash == std::string_view::npos) return parsed;
  path.remove_prefix(slash);
  if (!path.starts_with(kItems)) return std::nullopt;
  path.remove_prefix(kItems.size());
  parsed.items = true;
  if (path.empty()) return parsed;
  if (!path.starts_with('/') || path.find('/', 1) != std::string_view::npos) return std::nullopt;
  parsed.item = path.substr(1);
  return parsed;
}

struct ConversationBody {
  json::array items;
  std::optional<json::object> metadata;
};

Result<ConversationBody> read_conversation_body(http::Exchange& exchange) {
  const std::string text = exchange.take_body();
  TRY(const json::object body, openai::parse_body(text.empty() ? "{}" : text));
  openai::Fields fields(body);
  ConversationBody read;
  TRY(const json::array* items, fields.array("items"));
  TRY(const json::object* metadata, fields.object("metadata"));
  if (const auto unread = fields.unread(); !unread.empty())
    return invalid(unread.front(), "is not a field of a conversation");
  if (items) read.items = *items;
  if (metadata) read.metadata = *metadata;
  if (read.items.size() > kItemsAtOnceMax)
    return invalid("items", "must have at most {} items, got {}", kItemsAtOnceMax, read.items.size());
  for (std::size_t i = 0; i < read.items.size(); ++i)
    if (!read.items[i].is_object() || long_number(read.items[i]))
      return invalid(fmt::format("items[{}]", i), "must be an object");
  return read;
}

Result<json::object> answer_items(Service& service, http::Exchange& exchange, const ConversationPath& path) {
  openai::ConversationStore& store = service.responses->conversations();
  const std::string& method = exchange.request().method;
  if (path.item.empty() && method == "POST") {
    TRY(const ConversationBody body, read_conversation_body(exchange));
    TRY(json::array added, store.add(path.id, body.items));
    return item_list(std::move(added), false);
  }
  if (!path.item.empty() && method == "DELETE") {
    TRY_VOID(store.remove_item(path.id, path.item));
    return store.show(path.id);
  }
  TRY(json::array items, store.items(path.id));
  if (path.item.empty()) return item_page(exchange.request(), std::move(items));
  for (const json::value& item : items)
    if (item.at("id").as_string() == path.item) return item.as_object();
  return field_failure("item_id", ErrorCode::not_found, "the conversation has no item with this id");
}

Result<json::object> answer_conversation(Service& service, http::Exchange& exchange,
                                         const ConversationPath& path) {
  openai::ConversationStore& store = service.responses->conversations();
  const std::string& method = exchange.request().method;
  if (method == "GET") return store.show(path.id);
  if (method == "DELETE") {
    TRY_VOID(store.remove(path.id));
    return json::object{{"id", path.id}, {"object", "conversation.deleted"}, {"deleted", true}};
  }
  TRY(const ConversationBody body, read_conversation_body(exchange));
  if (path.id.empty()) return store.create(body.items, body.metadata.value_or(json::object()));
  if (!body.items.empty())
    return invalid("items", "must be absent: POST /v1/conversations/ID/items adds items");
  if (!body.metadata) return invalid("metadata", "is missing");
  return store.set_metadata(path.id, *body.metadata);
}

std::string_view methods_of(const ConversationPath& path) {
  if (path.id.empty()) return "POST";
  if (!path.items) return "GET, POST, DELETE";
  return path.item.empty() ? "GET, POST" : "GET, DELETE";
}

}  // namespace

Result<> conversations(const ServicePtr& service, const ExchangePtr& exchange) {
  const http::Request& request = exchange->request();
  const auto path = parse_conversation_path(request.path);
  if (!path)
    return failure(ErrorCode::not_found, "the route {} does not exist",
                   quoted_text(request.path.substr(0, 100)));
  if (methods_of(*path).find(request.method) == std::string_view::npos) {
    http::Response refusal = openai::error_response(
        405, fmt::format("{} is not allowed here: use {}", request.method, methods_of(*path)));
    refusal.headers.add("Allow", std::string(methods_of(*path)));
    exchange->respond(std::move(refusal));
    return {};
  }
  TRY(const json::object answer, path->items ? answer_items(*service, *exchange, *path)
                                             : answer_conversation(*service, *exchange, *path));
  exchange->respond({.body = exact_json_text(answer)});
  return {};
}

}  // namespace octavo::routes
