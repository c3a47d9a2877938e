// Runs batches of requests on an engine in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "local/progress.h"
#include "request/engine_client.h"

namespace octavo {

struct BatchRequest {
  std::vector<TokenId> prompt;
  int output_len = 0;  // output tokens
};

struct BatchShape {
  int input_len = 0;   // random prompt tokens, so prompts have no common prefixes
  int output_len = 0;  // output tokens
  double temperature = 1.0;
};

// Runs all requests concurrently. Returns the seconds until the last one ends. all_begun: called on the
// engine's thread when every request has its first token. bar: may be null. Errors: the engine's error for
// the first failed request.
Result<double> run_requests(
    EngineClient& engine, std::vector<BatchRequest> requests, double temperature,
    const std::function<void()>& all_begun = [] {}, ProgressBar* bar = nullptr);

// Runs `count` requests of the same shape concurrently. Returns the seconds until the last one ends. number:
// number of the first prompt, increased for each request; equal numbers give equal prompts. all_begun, bar,
// errors: as in run_requests().
Result<double> run_batch(
    EngineClient& engine, const BatchShape& shape, int count, std::uint64_t& number,
    const std::function<void()>& all_begun = [] {}, ProgressBar* bar = nullptr);

}  // namespace octavo
