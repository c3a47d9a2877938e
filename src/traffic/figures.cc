#include "traffic/figures.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/percentile.h"

namespace octavo::traffic {
namespace {

namespace json = boost::json;

struct Counted {
  double value;
  std::uint64_t count;
};

class Distribution {
 public:
  explicit Distribution(std::vector<Counted> ascending) : values_(std::move(ascending)) {
    for (const Counted& v : values_) {
      ends_.push_back(count_ += v.count);
      sum_ += v.value * static_cast<double>(v.count);
    }
  }

  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  double deviation() const {
    double squares = 0;
    for (const Counted& v : values_)
      squares += (v.value - mean()) * (v.value - mean()) * static_cast<double>(v.count);
    return count_ == 0 ? 0 : std::sqrt(squares / static_cast<double>(count_));
  }

  double percentile(double percent) const {
    return count_ == 0 ? 0
                       : octavo::percentile(count_, percent, [&](std::uint64_t rank) { return at(rank); });
  }

 private:
  double at(std::uint64_t rank) const {
    return values_[static_cast<std::size_t>(std::ranges::upper_bound(ends_, rank) - ends_.begin())].value;
  }

  std::vector<Counted> values_;
  std::vector<std::uint64_t> ends_;  // ends_[i]: number of values up to value i
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

Distribution distribution(std::vector<double> values) {
  std::ranges::sort(values);
  std::vector<Counted> counted;
  for (const double value : values) counted.push_back({value, 1});
  return Distribution(std::move(counted));
}

void put_times(json::object& out, std::string_view name, const Distribution& times,
               std::span<const double> percentiles) {
  out[fmt::format("mean_{}_ms", name)] = times.mean();
  out[fmt::format("median_{}_ms", name)] = times.percentile(50);
  out[fmt::format("std_{}_ms", name)] = times.deviation();
  for (const double percent : percentiles)
    out[fmt::format("p{:g}_{}_ms", percent, name)] = times.percentile(percent);
}

// Computes the largest number of tokens and of concurrent requests in a second. The tokens of a response
// are spread evenly between its first and last chunk.
void put_peaks(json::object& out, std::span<const AnswerTimes> answers) {
  std::map<std::int64_t, double> tokens;
  std::map<std::int64_t, int> opened;
  for (const AnswerTimes& a : answers) {
    if (!a.completed) continue;
    const std::int64_t first = a.first_us / 1'000'000, last = a.last_us / 1'000'000;
    ++opened[a.sent_us / 1'000'000];
    --opened[last + 1];
    const double each = static_cast<double>(a.output_tokens) / static_cast<double>(last - first + 1);
    for (std::int64_t second = first; second <= last; ++second) tokens[second] += each;
  }
  double most = 0;
  for (const auto& [second, count] : tokens) most = std::max(most, count);
  int open = 0, most_open = 0;
  for (const auto& [second, change] : opened) most_open = std::max(most_open, open += change);
  out["max_output_tokens_per_s"] = most;
  out["max_concurrent_requests"] = most_open;
}

}  // namespace

Times times_of(const AnswerTimes& a) {
  const double ttft = static_cast<double>(a.first_us - a.sent_us) * 1e-3;
  const double e2el = static_cast<double>(a.last_us - a.sent_us) * 1e-3;
  return {ttft, a.output_tokens > 1 ? (e2el - ttft) / (a.output_tokens - 1) : 0, e2el};
}

Result<Goodput> Goodput::parse(std::span<const std::string> limits, std::string_view field) {
  Goodput goodput;
  for (const std::string& limit : limits) {
    const std::size_t colon = limit.find(':');
    const std::string_view name = std::string_view(limit).substr(0, colon);
    double* time = name == "ttft"   ? &goodput.ttft_ms
                   : name == "tpot" ? &goodput.tpot_ms
                   : name == "e2el" ? &goodput.e2el_ms
                                    : nullptr;
    double value = 0;
    const char* end = limit.data() + limit.size();
    const bool number = colon != std::string::npos &&
                        std::from_chars(limit.data() + colon + 1, end, value).ptr == end && value > 0;
    if (time == nullptr || !number)
      return invalid(field, "\"{}\" must be ttft, tpot or e2el, a colon and milliseconds", limit);
    *time = value;
  }
  return goodput;
}

bool Goodput::met_by(const Times& times) const {
  const auto within = [](double time, double limit) { return limit == 0 || time <= limit; };
  return within(times.ttft, ttft_ms) && within(times.tpot, tpot_ms) && within(times.e2el, e2el_ms);
}

json::object figures(std::span<const AnswerTimes> answers, const GapCounts& gaps, double seconds,
                     const Goodput& goodput, std::span<const double> percentiles) {
  std::int64_t completed = 0, input = 0, output = 0, good = 0;
  std::vector<double> ttft, tpot, e2el;
  for (const AnswerTimes& a : answers) {
    if (!a.completed) continue;
    ++completed;
    input += a.input_tokens;
    output += a.output_tokens;
    const Times times = times_of(a);
    good += goodput.met_by(times);
    ttft.push_back(times.ttft);
    if (a.output_tokens > 1) tpot.push_back(times.tpot);
    e2el.push_back(times.e2el);
  }
  std::vector<Counted> counted;
  gaps.each([&](std::int64_t gap_us, std::uint64_t count) {
    counted.push_back({static_cast<double>(gap_us) * 1e-3, count});
  });
  const auto rate = [&](std::int64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  json::object out{{"duration", seconds},
                   {"completed", completed},
                   {"failed", static_cast<std::int64_t>(answers.size()) - completed},
                   {"total_input_tokens", input},
                   {"total_output_tokens", output},
                   {"request_throughput", rate(completed)},
                   {"request_goodput", goodput.limited() ? json::value(rate(good)) : json::value()},
                   {"output_throughput", rate(output)},
                   {"total_token_throughput", rate(input + output)}};
  put_peaks(out, answers);
  put_times(out, "ttft", distribution(std::move(ttft)), percentiles);
  put_times(out, "tpot", distribution(std::move(tpot)), percentiles);
  put_times(out, "itl", Distribution(std::move(counted)), percentiles);
  put_times(out, "e2el", distribution(std::move(e2el)), percentiles);
  return out;
}

}  // namespace octavo::traffic
