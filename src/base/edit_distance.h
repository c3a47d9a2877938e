// How far a name is from another, for errors that say what may have been meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace octavo {

// Levenshtein's distance.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace octavo
