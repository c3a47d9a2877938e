#include "serve/routes/item_page.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "base/quoted_text.h"
#include "http/target.h"

namespace octavo::routes {

namespace json = boost::json;

json::object item_list(json::array data, bool has_more) {
  json::object out{{"object", "list"}, {"has_more", has_more}, {"first_id", nullptr}, {"last_id", nullptr}};
  if (!data.empty()) {
    out["first_id"] = data.front().at("id");
    out["last_id"] = data.back().at("id");
  }
  out["data"] = std::move(data);
  return out;
}

Result<json::object> item_page(const http::Request& request, json::array items) {
  const auto parameter = [&](std::string_view name) {
    return http::query_value(request.query, name).value_or("");
  };
  std::size_t limit = 20;
  if (const std::string text = parameter("limit"); !text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (error != std::errc{} || end != text.data() + text.size() || limit < 1 || limit > 100)
      return invalid("limit", "must be an integer from 1 to 100, got {}", quoted_text(text.substr(0, 100)));
  }
  if (parameter("order") != "asc") std::ranges::reverse(items);
  const std::string after = parameter("after");
  auto first = items.begin();
  if (!after.empty()) {
    first = std::ranges::find_if(items,
                                 [&](const json::value& item) { return item.at("id").as_string() == after; });
    if (first == items.end())
      return field_failure("after", ErrorCode::not_found, "the list has no item with this id");
    ++first;
  }
  const auto count = std::min(limit, static_cast<std::size_t>(items.end() - first));
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  return item_list(json::array(first, last), last != items.end());
}

}  // namespace octavo::routes
