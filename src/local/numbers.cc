#include "local/numbers.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <string_view>

namespace octavo {

std::string expand_suffix(std::string text) {
  static const std::map<char, std::int64_t> units = {{'k', 1'000},
                                                     {'K', std::int64_t{1} << 10},
                                                     {'m', 1'000'000},
                                                     {'M', std::int64_t{1} << 20},
                                                     {'g', 1'000'000'000},
                                                     {'G', std::int64_t{1} << 30},
                                                     {'t', 1'000'000'000'000},
                                                     {'T', std::int64_t{1} << 40}};
  constexpr std::string_view kBytes = "iB";
  const bool bytes = text.size() > kBytes.size() + 1 && text.ends_with(kBytes) &&
                     std::string_view("KMGT").contains(text[text.size() - kBytes.size() - 1]);
  if (bytes) return expand_suffix(text.substr(0, text.size() - kBytes.size()));
  const auto unit = text.empty() ? units.end() : units.find(text.back());
  if (unit == units.end()) return text;
  double number = 0;
  const char* end = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return text;
  const double all = number * static_cast<double>(unit->second);
  if (!(all > -0x1p63 && all < 0x1p63)) return text;
  return std::to_string(static_cast<std::int64_t>(all));
}

}  // namespace octavo
