#include "grammar/unique_items.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/decimal.h"
#include "grammar/json_value.h"
#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

// Writes all numbers in the same form (no exponents, no trailing zeros), and sorts members by name.
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

bool UniqueItems::is_new(const Position& position, const std::string& key) const {
  return !seen_.contains(key) && std::ranges::find(position.ended, key) == position.ended.end();
}

bool UniqueItems::repeats(const Position& position) const {
  if (position.frames.empty() || !position.in_string) return false;
  const Frame& array = position.frames.back();
  if (!array.unique || array.item == kNone) return false;
  return !is_new(position, key_of(array.number, position.text.substr(array.item) + '"'));
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

// Called when an item of the innermost array ends at text[end]. If the array must have unique items, returns
// false if an earlier item is equal, and otherwise stores the item.
bool UniqueItems::end_item(Position& position, std::size_t end) const {
  Frame& array = position.frames.back();
  if (!array.unique || array.item == kNone) return true;
  std::string key =
      key_of(array.number, std::string_view(position.text).substr(array.item, end - array.item));
  array.item = kNone;
  if (!is_new(position, key) || bytes_ + key.size() > kUniqueBytesMax) return false;
  position.ended.push_back(std::move(key));
  if (position.frames.size() == 1) position.text.clear();
  return true;
}

bool UniqueItems::close(Position& position) const {
  if (!end_item(position, position.text.size() - (position.text.empty() ? 0 : 1))) return false;
  position.frames.pop_back();
  // The array or object that ends here was itself an item of the array around it.
  if (!position.frames.empty()) return end_item(position, position.text.size());
  position.text.clear();
  return true;
}

bool UniqueItems::step(Position& position, char byte, bool opens) const {
  const auto open = [&](bool unique) {
    position.frames.push_back({unique, unique ? ++position.arrays : 0, kNone});
  };
  if (position.frames.empty()) {
    if (opens) open(true);
    return true;
  }
  position.text.push_back(byte);
  if (position.in_string) {
    const bool ends = byte == '"' && !position.escaped;
    position.escaped = byte == '\\' && !position.escaped;
    position.in_string = !ends;
    return !ends || end_item(position, position.text.size());
  }
  if (byte == ',' || is_blank(byte)) return end_item(position, position.text.size() - 1);
  if (byte == ']' || byte == '}') return close(position);
  Frame& frame = position.frames.back();
  const bool begins = frame.unique && frame.item == kNone;
  if (begins) frame.item = position.text.size() - 1;
  if (byte == '"') position.in_string = true;
  if (byte == '[' || byte == '{') open(opens);
  // The first letter of a word determines the rest. If the word would repeat an item, it must not begin.
  constexpr std::string_view kWords[] = {"true", "false", "null"};
  for (const std::string_view word : kWords)
    if (begins && byte == word[0]) return is_new(position, key_of(frame.number, word));
  return true;
}

}  // namespace octavo::grammar
