#include "many/merge_metrics.h"

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <string_view>
#include <unordered_map>

namespace octavo::many {
namespace {

struct Series {
  std::string_view key;    // name and labels
  std::string_view value;  // value on the first page that has the series
  double sum = 0;
  bool added = false;  // more than one page has the series
};

struct Family {
  std::string_view head;  // HELP and TYPE lines
  std::deque<Series> series;
};

double number_of(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string merge_metrics(std::span<const std::string> pages) {
  std::deque<Family> families;
  std::unordered_map<std::string_view, Family*> by_name;
  std::unordered_map<std::string_view, Series*> by_key;
  for (const std::string& text : pages) {
    Family* family = nullptr;
    std::string_view page = text;
    while (!page.empty()) {
      const std::size_t size = std::min(page.find('\n'), page.size() - 1) + 1;
      const std::string_view line = page.substr(0, size);
      constexpr std::string_view kHelp = "# HELP ";
      if (line.starts_with(kHelp)) {
        const std::string_view name = line.substr(kHelp.size(), line.find(' ', kHelp.size()) - kHelp.size());
        auto [found, is_new] = by_name.try_emplace(name, nullptr);
        if (is_new) {
          const std::size_t type = page.find('\n', size);
          found->second = &families.emplace_back(Family{.head = page.substr(0, type + 1), .series = {}});
        }
        family = found->second;
      } else if (!line.starts_with('#') && family != nullptr) {
        const std::size_t space = line.rfind(' ');
        const std::string_view value = line.substr(space + 1, line.find('\n') - space - 1);
        auto [found, is_new] = by_key.try_emplace(line.substr(0, space), nullptr);
        if (is_new) found->second = &family->series.emplace_back(Series{.key = found->first, .value = value});
        found->second->sum += number_of(value);
        found->second->added |= !is_new;
      }
      page.remove_prefix(size);
    }
  }
  std::string out;
  for (const Family& family : families) {
    out += family.head;
    for (const Series& series : family.series)
      out += series.added ? fmt::format("{} {}\n", series.key, series.sum)
                          : fmt::format("{} {}\n", series.key, series.value);
  }
  return out;
}

}  // namespace octavo::many
