#include "base/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace octavo {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::vector<std::string_view> nearest_names(std::string_view name, std::vector<std::string_view> known,
                                            std::size_t most) {
  // longest name that is compared; clients choose the names, so this limits the time
  constexpr std::size_t kLongest = 100;
  std::vector<std::pair<std::size_t, std::string_view>> distances;
  for (const std::string_view each : known)
    distances.emplace_back(edit_distance(each, name.substr(0, kLongest)), each);
  const std::size_t count = std::min(most, distances.size());
  std::ranges::partial_sort(distances, distances.begin() + static_cast<std::ptrdiff_t>(count));
  known.clear();
  for (std::size_t i = 0; i < count; ++i) known.push_back(distances[i].second);
  return known;
}

std::string_view meant_name(std::string_view name, std::vector<std::string_view> known) {
  const auto nearest = nearest_names(name, std::move(known), 1);
  if (nearest.empty()) return "";
  const std::size_t allowed = std::max<std::size_t>(2, name.size() / 3);
  return edit_distance(nearest.front(), name) <= allowed ? nearest.front() : "";
}

}  // namespace octavo
