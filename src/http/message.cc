#include "http/message.h"

#include <algorithm>
#include <ostream>  // Boost.StringView 1.81 uses this header without including it.

#include <boost/beast/http/status.hpp>

namespace octavo::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

void Headers::set(std::string name, std::string value) {
  std::erase_if(fields_, [&](const auto& field) { return equal_ignoring_case(field.first, name); });
  add(std::move(name), std::move(value));
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (equal_ignoring_case(key, name)) return value;
  return std::nullopt;
}

std::size_t Headers::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields_, [&](const auto& field) { return equal_ignoring_case(field.first, name); }));
}

std::string_view reason_phrase(int status) {
  return boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(status)));
}

}  // namespace octavo::http
