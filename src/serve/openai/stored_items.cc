#include "serve/openai/stored_items.h"

#include <boost/json/object.hpp>
#include <utility>

namespace octavo::openai {

namespace json = boost::json;

namespace {

void make_parts(json::object& message) {
  json::value* content = message.if_contains("content");
  if (content == nullptr || !content->is_string()) return;
  const json::value* role = message.if_contains("role");
  const bool output = role != nullptr && *role == "assistant";
  *content = json::array{{{"type", output ? "output_text" : "input_text"}, {"text", std::move(*content)}}};
}

}  // namespace

json::array with_ids(const json::array& items,
                     const std::function<std::string(std::string_view, std::size_t)>& new_id) {
  json::array out;
  for (const json::value& item : items) {
    json::object& stored = out.emplace_back(item).as_object();
    if (!stored.contains("type")) stored["type"] = "message";
    if (stored.at("type") == "message") make_parts(stored);
    const json::value* id = stored.if_contains("id");
    if (id == nullptr || !id->is_string() || id->get_string().empty())
      stored["id"] = new_id(stored.at("type") == "message" ? "msg" : "item", out.size() - 1);
  }
  return out;
}

}  // namespace octavo::openai
