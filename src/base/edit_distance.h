// Distance between two names, for errors that suggest the name that was meant.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace octavo {

// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The `most` known names that are most similar to a name, the most similar first.
std::vector<std::string_view> nearest_names(std::string_view name, std::vector<std::string_view> known,
                                            std::size_t most);
// The known name that a name with a typing error means; "" if none is similar enough.
std::string_view meant_name(std::string_view name, std::vector<std::string_view> known);

}  // namespace octavo
