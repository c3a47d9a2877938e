// For tests: gets logprobs of an engine, to compare them with the logits of a golden file.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/testing/rig.h"

namespace octavo {

inline Recorder::Record run(Engine& engine, Request request) {
  const auto recorder = std::make_shared<Recorder>();
  const int answers = request.answers();
  const auto id = engine.submit(std::move(request), recorder);
  CHECK(id.has_value(), "{}", id.error().message);
  recorder->wait_ended(answers);
  return recorder->record();
}

// Returns the logprobs of the whole vocabulary at the last `positions` prompt positions before the last one:
// [positions, vocab], in order of token ids.
inline std::vector<float> last_logprobs(Engine& engine, Request request, std::size_t positions,
                                        std::size_t vocab) {
  request.sampling.logprobs.prompt = -1;
  const std::size_t tokens = request.prompt.size();
  const auto record = run(engine, std::move(request));
  CHECK(record.prompt_logprobs.size() + 1 == tokens, "{} of {}", record.prompt_logprobs.size(), tokens);
  std::vector<float> values;
  for (std::size_t i = record.prompt_logprobs.size() - positions; i < record.prompt_logprobs.size(); ++i) {
    std::vector<float> row(vocab);
    for (const auto& [id, logprob] : record.prompt_logprobs[i].top)
      row[static_cast<std::size_t>(id)] = logprob;
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

// Returns the log-softmax of logits [positions + 1, vocab], without the last position.
inline std::vector<float> log_softmax(std::span<const float> logits, std::size_t vocab) {
  std::vector<float> values;
  for (std::size_t row = 0; row + 2 * vocab <= logits.size(); row += vocab) {
    double sum = 0;
    for (std::size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[row + i]));
    for (std::size_t i = 0; i < vocab; ++i)
      values.push_back(static_cast<float>(logits[row + i] - std::log(sum)));
  }
  return values;
}

inline float difference(std::span<const float> a, std::span<const float> b) {
  CHECK(a.size() == b.size(), "{} and {} numbers", a.size(), b.size());
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace octavo
