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
  int output_len = 0;
};

struct BatchShape {
  // number of prompt tokens; they are random, so that prompts have no common prefix
  int input_len = 0;
  int prefix_len = 0;  // number of tokens before these that all prompts have in common
  int output_len = 0;
  double temperature = 1.0;
};

// Runs all requests at the same time. Returns the seconds until the last one ends, or the error of the
// first failed request. all_begun: called on the engine's thread when every request has its first token.
// bar: may be null.
Result<double> run_requests(
    EngineClient& engine, std::vector<BatchRequest> requests, double temperature,
    const std::function<void()>& all_begun = [] {}, ProgressBar* bar = nullptr);

// Runs `count` requests of equal shape at the same time. number: number of the first prompt, increased for
// each request. Equal numbers give equal prompts. Otherwise like run_requests().
Result<double> run_batch(
    EngineClient& engine, const BatchShape& shape, int count, std::uint64_t& number,
    const std::function<void()>& all_begun = [] {}, ProgressBar* bar = nullptr);

}  // namespace octavo
