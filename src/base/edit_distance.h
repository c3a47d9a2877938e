// Distance between two names, used by errors that suggest a similar name.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace octavo {

std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the `most` known names that are most similar to `name`, the most similar first.
std::vector<std::string_view> nearest_names(std::string_view name, std::vector<std::string_view> known,
                                            std::size_t most);
// Returns the known name that was probably meant if `name` has a typing error; "": no known name is similar
// enough.
std::string_view meant_name(std::string_view name, std::vector<std::string_view> known);

}  // namespace octavo
