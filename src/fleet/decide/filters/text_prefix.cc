// text-prefix-filter: keeps the endpoints with the lowest cost. The cost depends on the number of prompt
// bytes that the endpoint has not received, and on its requests in flight. A common prefix that is shorter
// than a given fraction of the prompt does not count, as in SGLang's cache_aware (which ignores the load).
// The filter compares text, so it needs no tokenizer.
#include <algorithm>
#include <utility>
#include <vector>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/index/text_tree.h"

namespace octavo::fleet {
namespace {

class TextPrefixFilter : public Filter {
 public:
  TextPrefixFilter(double match_threshold, std::size_t bytes_max)
      : match_threshold_(match_threshold), tree_(bytes_max) {}

  void filter(Cycle& cycle, Candidates& candidates) override {
    if (candidates.empty() || cycle.request.text.empty()) return;
    const std::size_t before = write_key(cycle.request);
    tree_.match(key_, match_);
    const auto length = static_cast<double>(cycle.request.text.size());
    costs_.clear();
    for (const Member* member : candidates) {
      const auto matched = static_cast<double>(std::max(match_.of(member->id), before) - before);
      const double missing = matched > match_threshold_ * length ? length - matched : length;
      costs_.emplace_back(cost(missing, cycle.load(*member).requests), member);
    }
    const double lowest = std::ranges::min(costs_, {}, &Cost::first).first;
    candidates.clear();
    for (const auto& [cost, member] : costs_)
      if (cost <= lowest) candidates.push_back(member);
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    if (cycle.request.text.empty()) return;
    const std::size_t before = write_key(cycle.request);
    tree_.match(key_, match_);
    const auto missed = static_cast<double>(key_.size() - std::max(match_.of(endpoint), before));
    mean_missed_ += (missed - mean_missed_) * kNewestShare;
    tree_.insert(key_, endpoint);
  }
  void forget(EndpointId endpoint) override { tree_.clear(endpoint); }
  void restarted(EndpointId endpoint) override { tree_.clear(endpoint); }

 private:
  // Writes the key: the model, the salt and the text. So prompts with a different model or salt have no
  // common prefix. Returns the number of bytes before the text.
  std::size_t write_key(const RouteRequest& request) {
    key_.assign(request.model).push_back('\0');
    key_.append(request.cache_salt).push_back('\0');
    const std::size_t before = key_.size();
    key_ += request.text;
    return before;
  }

  using Cost = std::pair<double, const Member*>;
  static constexpr double kNewestShare = 0.02;  // weight of the newest request in the moving average
  static constexpr double kDelay = 8;           // cost that a missing byte adds for each request in flight

  // Returns the cost in bytes, like kv_aware: the prompt bytes to compute and to store, the delay of the
  // requests in flight, and the work of these requests. `missing` is the number of prompt bytes that the
  // endpoint has not received.
  double cost(double missing, int requests) const {
    return missing * (2 + kDelay * requests) + 2 * requests * mean_missed_;
  }

  double match_threshold_;
  double mean_missed_ = 0;  // moving average of the bytes of a request that its endpoint had not received
  std::vector<Cost> costs_;
  TextTree tree_;
  TextMatch match_;
  std::string key_;
};

}  // namespace

std::unique_ptr<Plugin> make_text_prefix_filter(Parameters& parameters, Plugins&) {
  double match_threshold = 0.3;
  std::int64_t bytes_max = 64 << 20;
  parameters.read("matchThreshold", match_threshold, 0, 1);
  parameters.read("maxBytesPerEndpoint", bytes_max, 1, std::int64_t{1} << 36);
  return std::make_unique<TextPrefixFilter>(match_threshold, static_cast<std::size_t>(bytes_max));
}

}  // namespace octavo::fleet
