// Generates traffic: sessions of several turns, at a rate that changes over the day, in groups with a common
// system prompt.
#pragma once

#include <cstdint>
#include <string>

#include "fleet/simulate/trace.h"

namespace octavo::fleet {

struct TrafficShape {
  double seconds = 3600;
  // Mean number of sessions that begin per second, averaged over a day.
  double session_rate = 1;
  double burstiness = 1;        // shape of the gamma distribution of the gaps: 1 is Poisson, lower values are
                                // burstier
  double daily_swing = 0;       // fraction by which the rate varies around its mean; lowest at the beginning
                                // of a day
  double day_seconds = 86'400;  // length of a day
  double burst_every = 0;       // time between the starts of two bursts in seconds; 0: no bursts
  double burst_seconds = 60;    // length of a burst
  double burst_factor = 2;      // factor of the rate during a burst

  // Number of users; if set, replaces all fields above. A user starts one session after another, and pauses
  // after each answer. 0: sessions arrive at the rate and do not wait for answers.
  double users = 0;
  double user_sessions = 1;  // for each user

  double turns = 1;            // number of requests in a session; each prompt contains the earlier turns
  double think_seconds = 30;   // mean time between requests; for users, from an answer to the next request
  double groups = 1;           // number of groups of sessions, all equally likely
  double group_tokens = 0;     // number of common first tokens of a group's prompts
  double input_tokens = 1000;  // number of tokens that a turn adds to the prompt
  double output_tokens = 200;
  double spread = 0;  // relative half-width of the distributions of both lengths, in [0, 1)
};

// Reads a JSON object with any of the fields above from a file. Errors name the field and the limit.
Result<TrafficShape> read_traffic_shape(const std::string& path);

// Equal shape, block size and seed give equal traffic. Errors: no request in this time, or more requests than
// a trace can have.
Result<Trace> generate_traffic(const TrafficShape& shape, int block_tokens, std::uint64_t seed);

}  // namespace octavo::fleet
