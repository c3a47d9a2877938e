#include "grammar/contradiction.h"

#include <fmt/format.h>

#include "grammar/decimal.h"
#include "grammar/json_pointer.h"
#include "grammar/json_value.h"

namespace octavo::grammar {

namespace {

struct Bounds {
  std::string_view low, high;
  bool open = false;  // equal bounds leave no value either
};

constexpr Bounds kBounds[] = {{"minLength", "maxLength"},
                              {"minItems", "maxItems"},
                              {"minProperties", "maxProperties"},
                              {"minContains", "maxContains"},
                              {"minimum", "maximum"},
                              {"minimum", "exclusiveMaximum", true},
                              {"exclusiveMinimum", "maximum", true},
                              {"exclusiveMinimum", "exclusiveMaximum", true}};

std::optional<Decimal> number(const Json* value) {
  return value && value->is(Json::Kind::number) ? Decimal::parse(value->text) : std::nullopt;
}

std::string find(const Json& document, const Json& node) {
  for (const Bounds& bounds : kBounds) {
    const Json *low = node.find(bounds.low), *high = node.find(bounds.high);
    const auto from = number(low), to = number(high);
    if (from && to && (*from > *to || (bounds.open && *from == *to)))
      return fmt::format("'{}' at {} is {}, but '{}' is {}", bounds.low, pointer_to(document, *low),
                         low->text, bounds.high, high->text);
  }
  std::string found;
  for (std::size_t i = 0; found.empty() && i < node.items.size(); ++i) found = find(document, node.items[i]);
  for (std::size_t i = 0; found.empty() && i < node.members.size(); ++i)
    found = find(document, node.members[i].second);
  return found;
}

}  // namespace

std::string contradiction(std::string_view json) {
  const auto document = parse_json(json, "json");
  return document ? find(*document, *document) : "";
}

}  // namespace octavo::grammar
