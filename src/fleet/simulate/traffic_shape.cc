#include "fleet/simulate/traffic_shape.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "base/random.h"
#include "timing/number_fields.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kBlocksMax = 1 << 30;

constexpr double kYear = 366 * 86'400.0;
constexpr NumberField<TrafficShape> kFields[] = {
    {"seconds", &TrafficShape::seconds, false, 1, kYear},
    {"session_rate", &TrafficShape::session_rate, false, 1e-6, 1e6},
    {"burstiness", &TrafficShape::burstiness, false, 0.01, 1e6},
    {"daily_swing", &TrafficShape::daily_swing, false, 0, 1},
    {"day_seconds", &TrafficShape::day_seconds, false, 1, kYear},
    {"burst_every", &TrafficShape::burst_every, false, 0, kYear},
    {"burst_seconds", &TrafficShape::burst_seconds, false, 0, kYear},
    {"burst_factor", &TrafficShape::burst_factor, false, 1, 1000},
    {"users", &TrafficShape::users, false, 0, 1e6},
    {"user_sessions", &TrafficShape::user_sessions, false, 1, 1e6},
    {"turns", &TrafficShape::turns, false, 1, 1000},
    {"think_seconds", &TrafficShape::think_seconds, false, 0, 86'400},
    {"groups", &TrafficShape::groups, false, 1, 1e6},
    {"group_tokens", &TrafficShape::group_tokens, false, 0, 1 << 20},
    {"input_tokens", &TrafficShape::input_tokens, false, 1, 1 << 20},
    {"output_tokens", &TrafficShape::output_tokens, false, 1, 1 << 20},
    {"spread", &TrafficShape::spread, false, 0, 0.999},
};

// Returns the rate at this time, relative to session_rate.
double swing(const TrafficShape& shape, double seconds) {
  const double day = 2 * std::numbers::pi * seconds / shape.day_seconds;
  double factor = 1 - shape.daily_swing * std::cos(day);
  if (shape.burst_every > 0 &&
      std::fmod(seconds, shape.burst_every) >= shape.burst_every - shape.burst_seconds)
    factor *= shape.burst_factor;
  return factor;
}

class Generator {
 public:
  Generator(const TrafficShape& shape, int block_tokens, std::uint64_t seed)
      : shape_(shape), trace_{.block_tokens = block_tokens}, bits_(random_bits(seed, 0)) {
    group_blocks_ = static_cast<std::uint32_t>(shape.group_tokens) / static_cast<std::uint32_t>(block_tokens);
    trace_.block_limit = group_blocks_ * static_cast<std::uint32_t>(shape.groups);
  }

  Result<Trace> run() {
    if (shape_.users > 0) return run_users();
    std::gamma_distribution<double> gap(shape_.burstiness, 1 / shape_.burstiness);
    // The rate may be 0 for a moment. Limits the gap, so that arrivals resume when the rate rises again.
    const double longest = shape_.day_seconds / 64;
    for (double now = 0; now < shape_.seconds;) {
      const double rate = shape_.session_rate * swing(shape_, now);
      const double wait = gap(bits_) / std::max(rate, 1e-12);
      now += std::min(wait, longest);
      if (wait > longest || now >= shape_.seconds) continue;
      TRY_VOID(session(now));
    }
    if (trace_.requests.empty())
      return invalid("session_rate", "no session begins in {} seconds", shape_.seconds);
    std::ranges::stable_sort(trace_.requests, {}, &TraceRequest::arrival_us);
    return std::move(trace_);
  }

 private:
  int length(double mean) {
    std::uniform_real_distribution<double> within(1 - shape_.spread, 1 + shape_.spread);
    return std::max(1, static_cast<int>(std::lround(mean * within(bits_))));
  }

  struct Talk {
    std::uint32_t group = 0;  // number of the first block that the group shares
    std::uint32_t own = 0;    // number of the first block that only this session has
    int tokens = 0;
  };

  Talk talk() {
    std::uniform_int_distribution<std::uint32_t> draw(0, static_cast<std::uint32_t>(shape_.groups) - 1);
    return {draw(bits_) * group_blocks_, trace_.block_limit, static_cast<int>(shape_.group_tokens)};
  }

  Result<> turn(Talk& talk, std::int64_t arrival_us, std::uint32_t follows) {
    talk.tokens += length(shape_.input_tokens);
    const int output = length(shape_.output_tokens);
    const auto blocks =
        static_cast<std::uint32_t>((talk.tokens + trace_.block_tokens - 1) / trace_.block_tokens);
    if (trace_.requests.size() == kRequestsMax || trace_.blocks.size() + blocks > kBlocksMax)
      return invalid("session_rate", "the traffic has more than {} requests or {} blocks of prompts",
                     kRequestsMax, kBlocksMax);
    trace_.requests.push_back({.arrival_us = arrival_us,
                               .input_tokens = talk.tokens,
                               .output_tokens = output,
                               .first_block = static_cast<std::uint32_t>(trace_.blocks.size()),
                               .follows = follows});
    for (std::uint32_t block = 0; block < blocks; ++block)
      trace_.blocks.push_back(block < group_blocks_ ? talk.group + block : talk.own + block - group_blocks_);
    trace_.block_limit = std::max(trace_.block_limit, talk.own + blocks - std::min(blocks, group_blocks_));
    talk.tokens += output;
    return {};
  }

  Result<> session(double begin) {
    std::exponential_distribution<double> think;
    Talk talk = this->talk();
    double now = begin;
    for (int i = 0; i < static_cast<int>(shape_.turns) && now < shape_.seconds; ++i) {
      TRY_VOID(turn(talk, static_cast<std::int64_t>(now * 1e6), kNoRequest));
      now += shape_.think_seconds * think(bits_);
    }
    return {};
  }

  // Users pause before their first request, so that they do not all start at the same time.
  Result<Trace> run_users() {
    std::exponential_distribution<double> think;
    trace_.closed = true;
    const auto thought = [&] { return static_cast<std::int64_t>(shape_.think_seconds * think(bits_) * 1e6); };
    for (int user = 0; user < static_cast<int>(shape_.users); ++user) {
      std::uint32_t last = kNoRequest;
      for (int i = 0; i < static_cast<int>(shape_.user_sessions); ++i) {
        Talk talk = this->talk();
        for (int j = 0; j < static_cast<int>(shape_.turns); ++j) {
          TRY_VOID(turn(talk, thought(), last));
          last = static_cast<std::uint32_t>(trace_.requests.size() - 1);
        }
      }
    }
    return std::move(trace_);
  }

  const TrafficShape& shape_;
  Trace trace_;
  std::mt19937_64 bits_;
  std::uint32_t group_blocks_ = 0;
};

}  // namespace

Result<TrafficShape> read_traffic_shape(const std::string& path) { return read_number_fields(path, kFields); }

Result<Trace> generate_traffic(const TrafficShape& shape, int block_tokens, std::uint64_t seed) {
  const double sessions =
      shape.users > 0 ? shape.users * shape.user_sessions : shape.seconds * shape.session_rate;
  const double expected = sessions * shape.turns;
  if (expected > static_cast<double>(kRequestsMax))
    return invalid(shape.users > 0 ? "users" : "session_rate",
                   "the traffic has {:.0f} requests, but at most {} are allowed", expected, kRequestsMax);
  return Generator(shape, block_tokens, seed).run();
}

}  // namespace octavo::fleet
