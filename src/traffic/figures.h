// Figures of a benchmark (throughput, TTFT, TPOT, ..), with the names of `vllm bench serve`.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "traffic/gap_counts.h"

namespace octavo::traffic {

// One response. Times are in microseconds of one clock.
struct AnswerTimes {
  bool completed = false;
  int input_tokens = 0;
  int output_tokens = 0;
  std::int64_t sent_us = 0;
  std::int64_t first_us = 0;
  std::int64_t last_us = 0;
};

// Milliseconds. ttft: from sending to the first chunk. tpot: mean time for each token after the first; 0 if
// there is only one. e2el: from sending to the last chunk.
struct Times {
  double ttft, tpot, e2el;
};
Times times_of(const AnswerTimes& answer);

// Limits in ms that a request must meet to be good; 0: no limit.
struct Goodput {
  double ttft_ms = 0;
  double tpot_ms = 0;
  double e2el_ms = 0;

  // Parses "ttft:200", "tpot:50", "e2el:10000". Returns invalid_argument on `field` for other texts.
  static Result<Goodput> parse(std::span<const std::string> limits, std::string_view field = "goodput");
  bool limited() const { return ttft_ms > 0 || tpot_ms > 0 || e2el_ms > 0; }
  bool met_by(const Times& times) const;
};

// Returns these figures:
// - completed, failed, total_*_tokens, *_throughput.
// - request_goodput; null without limits.
// - max_output_tokens_per_s and max_concurrent_requests, both in a second of the clock, as in vLLM.
// - mean_, median_, std_ and pXX_{ttft,tpot,itl,e2el}_ms.
// Incomplete responses count as failed, and their times are ignored. gaps: times between the chunks of each
// response.
boost::json::object figures(std::span<const AnswerTimes> answers, const GapCounts& gaps, double seconds,
                            const Goodput& goodput, std::span<const double> percentiles);

}  // namespace octavo::traffic
