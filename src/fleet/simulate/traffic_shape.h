// Generated traffic: sessions of several turns at a rate that changes over the day, in groups with a common
// system prompt.
#pragma once

#include <cstdint>
#include <string>

#include "fleet/simulate/trace.h"

namespace octavo::fleet {

struct TrafficShape {
  double seconds = 3600;
  // Sessions begin at this rate per second, averaged over a day.
  double session_rate = 1;
  double burstiness = 1;        // shape of the gamma distribution of the gaps: 1 is Poisson, less is burstier
  double daily_swing = 0;       // the rate swings by this share, lowest at the beginning of a day
  double day_seconds = 86'400;  // length of a day
  double burst_every = 0;       // seconds from one burst to the next; 0 for no bursts
  double burst_seconds = 60;    // length of a burst
  double burst_factor = 2;      // factor of the rate in a burst

  // Number of users, which replaces all fields above. A user has one session after the other, and thinks
  // after each answer. 0: sessions arrive at the rate and do not wait for answers.
  double users = 0;
  double user_sessions = 1;  // of each

  double turns = 1;            // requests of a session; each prompt holds the turns before it
  double think_seconds = 30;   // mean time between requests; for users, after the answer
  double groups = 1;           // of sessions, all equally likely
  double group_tokens = 0;     // common first tokens of a group's prompts
  double input_tokens = 1000;  // tokens that a turn adds to the prompt
  double output_tokens = 200;
  double spread = 0;  // relative half-width of both lengths' distributions, in [0, 1)
};

// A JSON object with any of the fields above, in a file. Errors name the field and the limit.
Result<TrafficShape> read_traffic_shape(const std::string& path);

// Equal shape, block size and seed give equal traffic. Errors: no request in this time, or more requests than
// a trace can hold.
Result<Trace> generate_traffic(const TrafficShape& shape, int block_tokens, std::uint64_t seed);

}  // namespace octavo::fleet
