// length-bucket-picker (SGLang's bucket, for prefill workers): sends prompts of similar length to the same
// endpoint, so that short prompts do not wait for long prompts. Each endpoint has a range of lengths, and all
// ranges have the same amount of work. If the load is unequal, the least loaded endpoint is picked.
#include <algorithm>
#include <vector>

#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

// maximum number of prompt lengths that are stored in one interval
constexpr std::size_t kLengthsMax = 1 << 16;

class LengthBucketPicker : public Picker {
 public:
  std::int64_t abs_threshold = 32;  // tokens
  double rel_threshold = 1.0001;
  std::int64_t interval_us = 5'000'000;

  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    std::ranges::sort(ranking, {}, &Score::endpoint);
    const auto given = [&](const Score& s) { return s.endpoint < given_.size() ? given_[s.endpoint] : 0; };
    const auto [least, most] = std::ranges::minmax(ranking, {}, given);
    const std::int64_t low = given(least), high = given(most);
    if (high - low > abs_threshold && static_cast<double>(high) > rel_threshold * static_cast<double>(low)) {
      std::ranges::stable_sort(ranking, {}, given);
      return;
    }
    const double position =
        position_of(std::ssize(cycle.request.tokens)) * static_cast<double>(ranking.size());
    const auto bucket = std::min(static_cast<std::size_t>(position), ranking.size() - 1);
    std::ranges::rotate(ranking, ranking.begin() + static_cast<std::ptrdiff_t>(bucket));
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    const std::int64_t length = std::ssize(cycle.request.tokens);
    if (endpoint >= given_.size()) given_.resize(endpoint + std::size_t{1}, 0);
    given_[endpoint] += length;
    if (lengths_.size() < kLengthsMax) lengths_.push_back(length);
  }

  void forget(EndpointId endpoint) override {
    if (endpoint < given_.size()) given_[endpoint] = 0;
  }

  // Starts a new interval. Its bounds are computed from the prompts of the previous interval.
  void expire(std::int64_t now_us) override {
    if (now_us - begun_us_ < interval_us) return;
    begun_us_ = now_us;
    std::ranges::fill(given_, 0);
    if (lengths_.empty()) return;
    std::ranges::sort(lengths_);
    last_lengths_.swap(lengths_);
    lengths_.clear();
    work_below_.assign(1, 0);
    for (const std::int64_t length : last_lengths_) work_below_.push_back(work_below_.back() + length);
  }

 private:
  // Returns the fraction of the previous interval's work that was in prompts shorter than `length`, from 0 to
  // 1.
  double position_of(std::int64_t length) const {
    constexpr double kTypicalMax = 1024;  // tokens; used during the first interval
    if (work_below_.empty() || work_below_.back() == 0) return static_cast<double>(length) / kTypicalMax;
    const auto [begin, end] = std::ranges::equal_range(last_lengths_, length);
    const auto below = [&](auto position) {
      return work_below_[static_cast<std::size_t>(position - last_lengths_.begin())];
    };
    return static_cast<double>(below(begin) + below(end)) / 2 / static_cast<double>(work_below_.back());
  }

  std::vector<std::int64_t> given_;  // [EndpointId] tokens sent in this interval
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> last_lengths_;  // lengths in the previous interval, ascending
  std::vector<std::int64_t> work_below_;    // [i] sum of last_lengths_[0] to last_lengths_[i - 1]
  std::int64_t begun_us_ = 0;
};

}  // namespace

std::unique_ptr<Plugin> make_length_bucket_picker(Parameters& parameters, Plugins&) {
  auto picker = make_picker<LengthBucketPicker>(parameters);
  parameters.read("absThreshold", picker->abs_threshold, 0, 1'000'000'000);
  parameters.read("relThreshold", picker->rel_threshold, 1, 1e6);
  parameters.read_duration("interval", picker->interval_us);
  return picker;
}

}  // namespace octavo::fleet
