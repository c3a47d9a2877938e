// Runs batches of requests on an engine in this process, for benchmarks.
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
  int output_len = 0;  // number of output tokens
};

struct BatchShape {
  int input_len = 0;   // number of prompt tokens of a request; they are random, so that prompts share no
                       // prefix
  int output_len = 0;  // number of output tokens
  double temperature = 1.0;
};

// Runs all requests at the same time. Returns the seconds until the last one has ended.
// all_begun: called on the engine's thread when each request has its first token.
// bar: may be null. Errors: the engine's error for the first failed request.
Result<double> run_requests(
    EngineClient& engine, std::vector<BatchRequest> requests, double temperature,
    const std::function<void()>& all_begun = [] {}, ProgressBar* bar = nullptr);

// Runs `count` requests of the same shape at the same time. Returns the seconds until the last one has ended.
// number: number of the first request, increased for each request; equal numbers give equal prompts.
// all_begun, bar, errors: as above.
Result<double> run_batch(
    EngineClient& engine, const BatchShape& shape, int count, std::uint64_t& number,
    const std::function<void()>& all_begun = [] {}, ProgressBar* bar = nullptr);

}  // namespace octavo
