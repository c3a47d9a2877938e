// text-prefix-filter: keeps the endpoints that have received the longest prefix of the prompt, if it is a
// large enough fraction of the prompt (SGLang's cache_aware). It compares text, so it needs no tokenizer.
#include <algorithm>

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
    const auto matched = [&](const Member* m) { return std::max(match_.of(m->id), before) - before; };
    const std::size_t longest = matched(*std::ranges::max_element(candidates, {}, matched));
    const auto length = static_cast<double>(cycle.request.text.size());
    if (static_cast<double>(longest) <= match_threshold_ * length) return;
    std::erase_if(candidates, [&](const Member* m) { return matched(m) < longest; });
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    if (cycle.request.text.empty()) return;
    write_key(cycle.request);
    tree_.insert(key_, endpoint);
  }
  void forget(EndpointId endpoint) override { tree_.clear(endpoint); }
  void restarted(EndpointId endpoint) override { tree_.clear(endpoint); }

 private:
  // Writes the beginning of the key, so that prompts of different models or salts have no common prefix.
  // Returns its number of bytes.
  std::size_t write_key(const RouteRequest& request) {
    key_.assign(request.model).push_back('\0');
    key_.append(request.cache_salt).push_back('\0');
    const std::size_t before = key_.size();
    key_ += request.text;
    return before;
  }

  double match_threshold_;
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
