#include "serve/openai/item_references.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/exact_json.h"
#include "base/quoted_text.h"
#include "openai/request_fields.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

// Finds items of stored responses by their ids. Reads each response once.
class StoredItems {
 public:
  explicit StoredItems(const ResponseStore& stored) : stored_(stored) {}

  // `field` is the name for errors.
  Result<json::value> find(const std::string& id, const std::string& field) {
    const std::string response = stored_.response_with(id);
    auto known = outputs_.find(response);
    if (known == outputs_.end() && !response.empty()) {
      if (const auto text = stored_.response(response)) {
        boost::system::error_code ignored;  // The server wrote this text itself.
        known = outputs_.emplace(response, parse_exact_json(*text, ignored).at("output").as_array()).first;
      }
    }
    const auto same = [&](const json::value& item) {
      const json::value* given = item.as_object().if_contains("id");
      return given && given->is_string() && std::string_view(given->get_string()) == id;
    };
    if (known != outputs_.end()) {
      const auto item = std::ranges::find_if(known->second, same);
      if (item != known->second.end()) {
        bytes_ += exact_json_text(*item).size();
        if (bytes_ > kBytesMax)
          return invalid(field, "the referenced items have more than {} bytes together: send fewer items",
                         kBytesMax);
        return *item;
      }
    }
    return invalid(field, "no stored response has the item {}: send the item itself",
                   octavo::quoted_text(id));
  }

 private:
  static constexpr std::size_t kBytesMax = std::size_t{16} << 20;

  const ResponseStore& stored_;
  std::map<std::string, json::array> outputs_;  // by the id of the response
  std::size_t bytes_ = 0;
};

}  // namespace

Result<> resolve_references(json::array& items, std::size_t first, const ResponseStore& stored) {
  StoredItems known(stored);
  for (std::size_t i = first; i < items.size(); ++i) {
    const json::object* item = items[i].if_object();
    const json::value* type = item ? item->if_contains("type") : nullptr;
    if (!type || *type != "item_reference") continue;
    const std::string at = fmt::format("input[{}].", i - first);
    Fields fields(*item, at);
    std::string id;
    TRY_VOID(fields.text("id", id));
    TRY(json::value found, known.find(id, at + "id"));
    items[i] = std::move(found);
  }
  return {};
}

}  // namespace octavo::openai
