// Generates traffic: sessions of several turns, in groups with a common system prompt, at a rate that
// changes over the day.
#pragma once

#include <cstdint>
#include <string>

#include "fleet/simulate/trace.h"

namespace octavo::fleet {

struct TrafficShape {
  double seconds = 3600;
  // mean number of new sessions per second, averaged over a day
  double session_rate = 1;
  double burstiness = 1;  // shape of the gamma distribution of the gaps; 1: Poisson, below 1: burstier
  // relative amplitude of the daily change of the rate, which is lowest at the beginning of a day
  double daily_swing = 0;
  double day_seconds = 86'400;
  double burst_every = 0;       // seconds between the starts of two bursts; 0: no bursts
  double burst_seconds = 60;
  double burst_factor = 2;

  // Number of users. 0: sessions arrive at session_rate, and their requests do not wait for answers. Above
  // 0, the fields above have no effect: each user starts one session after the other, and pauses after each
  // answer.
  double users = 0;
  double user_sessions = 1;

  double turns = 1;  // requests in a session; each prompt contains all earlier turns
  // mean seconds between two requests; with `users`, from an answer to the next request
  double think_seconds = 30;
  double groups = 1;           // number of groups, all equally likely
  double group_tokens = 0;     // number of first tokens that all prompts of a group share
  double input_tokens = 1000;  // tokens that a turn adds to the prompt
  double output_tokens = 200;
  // relative half-width of the distributions of input_tokens and output_tokens, in [0, 1)
  double spread = 0;
};

// Reads a JSON file with any of the fields above. Returns an error on the field, with its limit.
Result<TrafficShape> read_traffic_shape(const std::string& path);

// Equal shape, block size and seed give equal traffic. Returns an error if the shape gives no requests, or
// more requests than a trace may have.
Result<Trace> generate_traffic(const TrafficShape& shape, int block_tokens, std::uint64_t seed);

}  // namespace octavo::fleet
