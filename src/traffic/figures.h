// The figures of many answers, under the names that vLLM's `bench serve` has for them.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "traffic/gap_counts.h"

namespace octavo::traffic {

// What became of one request. Times in microseconds of one clock.
struct AnswerTimes {
  bool completed = false;
  int input_tokens = 0;
  int output_tokens = 0;
  std::int64_t sent_us = 0;
  std::int64_t first_us = 0;  // the first piece of the answer
  std::int64_t last_us = 0;   // the last one
};

// In milliseconds. ttft: from sending to the first piece; tpot: the mean time of a further token, 0 where
// there is none; e2el: from sending to the last piece.
struct Times {
  double ttft, tpot, e2el;
};
Times times_of(const AnswerTimes& answer);

// How fast a request must be answered to be good, in milliseconds; 0: any time will do.
struct Goodput {
  double ttft_ms = 0;
  double tpot_ms = 0;
  double e2el_ms = 0;

  // "ttft:200", "tpot:50", "e2el:10000". Errors: invalid_argument (field "goodput").
  static Result<Goodput> parse(std::span<const std::string> limits);
  bool limited() const { return ttft_ms > 0 || tpot_ms > 0 || e2el_ms > 0; }
  bool met_by(const Times& times) const;
};

// completed, failed, total_*_tokens, *_throughput, request_goodput (null without limits),
// max_output_tokens_per_s and max_concurrent_requests (both over whole seconds, as vLLM counts them), and
// mean_, median_, std_ and pXX_{ttft,tpot,itl,e2el}_ms. Answers that did not complete count as failed and in
// no time. gaps: the times between the pieces of an answer.
boost::json::object figures(std::span<const AnswerTimes> answers, const GapCounts& gaps, double seconds,
                            const Goodput& goodput, std::span<const double> percentiles);

}  // namespace octavo::traffic
