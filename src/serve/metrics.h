// The metrics at /metrics: vLLM's names, labels and buckets, in Prometheus' text format 0.0.4.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "accounts/accounts.h"
#include "request/engine_info.h"
#include "request/engine_stats.h"
#include "request/histogram.h"
#include "request/request.h"
#include "serve/http_metrics.h"

namespace octavo {

struct AnswerRecord {
  int engine = 0;  // EngineInfo::index
  FinishReason reason = FinishReason::stop;
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int generation_tokens = 0;
  int max_tokens = 0;
  int n = 1;
  int preemptions = 0;
  RequestTimes times;
  std::int64_t finished_us = 0;
};

// Any thread may call the functions.
class Metrics {
 public:
  Metrics(std::string model_name, int max_model_len, AccountOptions account_options = {});

  void first_token(int engine, double seconds);
  void token_gap(int engine, double seconds);
  void answer_ended(const AnswerRecord& record);
  void admission_rejected();

  struct Latencies {
    Histogram first_token, token_gap;  // in seconds
  };
  Latencies latencies(int engine) const;

  // Returns all metrics. The values of each engine have the engine's index as a label.
  std::string text(std::span<const EngineStats> engines, const EngineInfo& info) const;

  HttpMetrics http;
  Accounts accounts;

 private:
  struct Answers {
    explicit Answers(int max_model_len);

    std::array<std::int64_t, 5> ended{};  // number of ended answers by FinishReason
    Histogram prompt_tokens, generation_tokens, max_generation_tokens, params_max_tokens, computed_tokens;
    Histogram params_n, preemptions;
    Histogram first_token, token_gap, time_per_token;
    Histogram latency, queue, inference, prefill, decode;
  };

  Answers& of(int engine);

  std::string model_name_;
  int max_model_len_;
  mutable std::mutex mutex_;
  std::vector<Answers> engines_;
  std::int64_t rejected_ = 0;
};

}  // namespace octavo
