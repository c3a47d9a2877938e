#include "grammar/unique_items.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/decimal.h"
#include "grammar/json_value.h"
#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

// Removes exponents and trailing zeros of numbers, and sorts members.
void normalize(Json& value) {
  if (value.is(Json::Kind::number))
    if (const auto d = Decimal::parse(value.text))
      value.text = fmt::format("{}{}.{}", d->negative ? "-" : "", d->integer, d->fraction);
  for (Json& item : value.items) normalize(item);
  for (auto& member : value.members) normalize(member.second);
  std::ranges::sort(value.members, {}, &std::pair<std::string, Json>::first);
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string key_of(std::uint32_t array, std::string_view item) { return fmt::format("{}:{}", array, canonical_json(item)); }

}  // namespace

std::string canonical_json(std::string_view text) {
  auto value = parse_json(text, "");
  if (!value) return std::string(text);
  normalize(*value);
  return to_text(*value);
}

bool UniqueItems::is_new(const Place& place, const std::string& key) const {
  return !seen_.contains(key) && std::ranges::find(place.ended, key) == place.ended.end();
}

bool UniqueItems::repeats(const Place& place) const {
  if (place.frames.empty() || !place.in_string) return false;
  const Frame& array = place.frames.back();
  if (!array.unique || array.item == kNone) return false;
  return !is_new(place, key_of(array.number, place.text.substr(array.item) + '"'));
}

std::vector<std::string> UniqueItems::rests() const {
  std::vector<std::string> rests;
  if (!active() || !now_.in_string) return rests;
  const Frame& array = now_.frames.back();
  if (!array.unique || array.item == kNone) return rests;
  const std::string begun = fmt::format("{}:{}", array.number, std::string_view(now_.text).substr(array.item));
  for (const std::string& item : seen_)
    if (item.starts_with(begun) && item.size() > begun.size() + 1)
      rests.push_back(item.substr(begun.size(), item.size() - begun.size() - 1));
  return rests;
}

// Ends the item text[item, end) if its array must have unique items. Returns false if an earlier item is
// equal.
bool UniqueItems::end_item(Place& place, std::size_t end) const {
  Frame& array = place.frames.back();
  if (!array.unique || array.item == kNone) return true;
  std::string key = key_of(array.number, std::string_view(place.text).substr(array.item, end - array.item));
  array.item = kNone;
  if (!is_new(place, key) || bytes_ + key.size() > kUniqueBytesMax) return false;
  place.ended.push_back(std::move(key));
  if (place.frames.size() == 1) place.text.clear();
  return true;
}

bool UniqueItems::close(Place& place) const {
  if (!end_item(place, place.text.size() - (place.text.empty() ? 0 : 1))) return false;
  place.frames.pop_back();
  // This array or object was itself an item.
  if (!place.frames.empty()) return end_item(place, place.text.size());
  place.text.clear();
  return true;
}

bool UniqueItems::step(Place& place, char byte, bool opens) const {
  const auto open = [&](bool unique) { place.frames.push_back({unique, unique ? ++place.arrays : 0, kNone}); };
  if (place.frames.empty()) {
    if (opens) open(true);
    return true;
  }
  place.text.push_back(byte);
  if (place.in_string) {
    const bool ends = byte == '"' && !place.escaped;
    place.escaped = byte == '\\' && !place.escaped;
    place.in_string = !ends;
    return !ends || end_item(place, place.text.size());
  }
  if (byte == ',' || is_blank(byte)) return end_item(place, place.text.size() - 1);
  if (byte == ']' || byte == '}') return close(place);
  Frame& frame = place.frames.back();
  const bool begins = frame.unique && frame.item == kNone;
  if (begins) frame.item = place.text.size() - 1;
  if (byte == '"') place.in_string = true;
  if (byte == '[' || byte == '{') open(opens);
  // The first letter identifies the word. If the item may not end as this word, the word must not begin.
  constexpr std::string_view kWords[] = {"true", "false", "null"};
  for (const std::string_view word : kWords)
    if (begins && byte == word[0]) return is_new(place, key_of(frame.number, word));
  return true;
}

}  // namespace octavo::grammar
