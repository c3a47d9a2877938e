// Formats bytes for people: "1.23 GB", "11.8 MB".
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>

namespace octavo {

std::string size_text(std::integral auto bytes) {
  const auto count = static_cast<double>(bytes);
  return count >= 1e9 ? fmt::format("{:.2f} GB", count * 1e-9) : fmt::format("{:.1f} MB", count * 1e-6);
}

}  // namespace octavo
