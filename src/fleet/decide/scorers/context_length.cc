// context-length-aware: a label of the endpoint contains its range of prompt lengths in tokens, as
// "min-max". Within the range, the score falls from 1 at min to 0.3 at max. Outside the range, the score is
// below 0.3 and falls with the distance. Endpoints without the label have the score 0.5. As a filter, the
// plugin removes endpoints whose range does not contain the prompt's length.
#include <algorithm>
#include <charconv>
#include <optional>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

struct Range {
  double min = 0;
  double max = 0;
};

std::optional<Range> read_range(std::string_view text) {
  std::int64_t min = 0, max = 0;
  const char* const end = text.data() + text.size();
  const auto [dash, wrong_min] = std::from_chars(text.data(), end, min);
  if (wrong_min != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [rest, wrong_max] = std::from_chars(dash + 1, end, max);
  if (wrong_max != std::errc() || rest != end || min < 0 || max < min) return std::nullopt;
  return Range{static_cast<double>(min), static_cast<double>(max)};
}

class ContextLengthAware : public Scorer, public Filter {
 public:
  std::string label = "llm-d.ai/context-length-range";
  bool filters = false;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const auto tokens = static_cast<double>(cycle.request.tokens.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto range = range_of(*candidates[i]);
      scores[i] = range ? fit(*range, tokens) : 0.5;
    }
  }

  void filter(Cycle& cycle, Candidates& candidates) override {
    if (!filters) return;
    const auto tokens = static_cast<double>(cycle.request.tokens.size());
    const auto outside = [&](const Member* member) {
      const auto range = range_of(*member);
      return range && (tokens < range->min || tokens > range->max);
    };
    if (!std::ranges::all_of(candidates, outside)) std::erase_if(candidates, outside);
  }

 private:
  std::optional<Range> range_of(const Member& member) const {
    const auto found = member.endpoint->labels.find(label);
    return found != member.endpoint->labels.end() ? read_range(found->second) : std::nullopt;
  }

  static double fit(const Range& range, double tokens) {
    constexpr double kEdge = 0.3;
    if (tokens < range.min) return kEdge * tokens / (range.min + 1);
    if (tokens > range.max) return kEdge * range.max / (tokens + 1);
    const double share = (tokens - range.min) / (range.max - range.min + 1);
    return 1 - (1 - kEdge) * share;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_context_length_aware(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<ContextLengthAware>();
  parameters.read("label", plugin->label);
  parameters.read("enableFiltering", plugin->filters);
  return plugin;
}

}  // namespace octavo::fleet
