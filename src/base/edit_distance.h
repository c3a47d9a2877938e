// Distance between two names, for errors that suggest the name that was meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace octavo {

// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace octavo
