#pragma once

#include <string_view>

namespace octavo {

inline constexpr std::string_view kVersion = OCTAVO_VERSION;

}  // namespace octavo
