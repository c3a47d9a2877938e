// Finds similar names, for errors that suggest the right name.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace octavo {

std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns at most `most` known names, the most similar one first.
std::vector<std::string_view> nearest_names(std::string_view name, std::vector<std::string_view> known,
                                            std::size_t most);
// Returns the known name if `name` seems to be a typing error of it, otherwise "".
std::string_view meant_name(std::string_view name, std::vector<std::string_view> known);

}  // namespace octavo
