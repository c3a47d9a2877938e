#include "grammar/json_pointer.h"

#include <algorithm>

namespace octavo::grammar {

std::string escaped_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

namespace {

constexpr std::size_t kPointerBytesMax = 400;

// Shortens the pointer to at most kPointerBytesMax bytes and "...". Does not split a UTF-8 character.
void shorten(std::string& pointer) {
  if (pointer.size() <= kPointerBytesMax) return;
  std::size_t end = kPointerBytesMax;
  while ((pointer[end] & 0xC0) == 0x80) --end;
  pointer.resize(end);
  pointer += "...";
}

}  // namespace

std::string pointer_to(const Json& document, const Json& value) {
  // Values are ordered by offset, and a parent has a smaller offset than its children.
  std::string pointer = "#";
  for (const Json* node = &document; node->offset != value.offset && pointer.size() <= kPointerBytesMax;) {
    const auto item = std::ranges::upper_bound(node->items, value.offset, {}, &Json::offset);
    const auto member = std::ranges::upper_bound(node->members, value.offset, {},
                                                 [](const auto& each) { return each.second.offset; });
    if (item != node->items.begin()) {
      pointer += fmt::format("/{}", item - 1 - node->items.begin());
      node = &*(item - 1);
    } else if (member != node->members.begin()) {
      const std::string_view key = (member - 1)->first;
      pointer += fmt::format("/{}", escaped_pointer(key.substr(0, kPointerBytesMax + 4)));
      node = &(member - 1)->second;
    } else {
      break;
    }
  }
  shorten(pointer);
  return pointer;
}

const Json* at_pointer(const Json& document, std::string_view pointer) {
  const Json* node = &document;
  while (node && !pointer.empty()) {
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    std::string token;
    for (std::size_t i = 0; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
        token += pointer[++i] == '0' ? '~' : '/';
      } else {
        token += pointer[i];
      }
    }
    pointer.remove_prefix(end);
    const Json* next = node->find(token);
    if (node->is(Json::Kind::array) && !token.empty() && token.size() < 7 &&
        token.find_first_not_of("0123456789") == std::string::npos && std::stoul(token) < node->items.size())
      next = &node->items[std::stoul(token)];
    node = next;
  }
  return node;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto hex = [&](std::size_t at) {
      return at < text.size() ? std::string_view("0123456789abcdef").find(static_cast<char>(text[at] | 0x20))
                              : std::string_view::npos;
    };
    const auto high = hex(i + 1), low = hex(i + 2);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace octavo::grammar
