// What /metrics tells: vLLM's names, labels and buckets, in Prometheus' text format 0.0.4.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "request/engine_stats.h"
#include "request/histogram.h"
#include "request/request.h"

namespace octavo {

// One answer that has ended in the engine.
struct AnswerRecord {
  FinishReason reason = FinishReason::stop;
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int generation_tokens = 0;
  int max_tokens = 0;
  int n = 1;
  RequestTimes times;
  std::int64_t finished_us = 0;
};

// What making grammars for structured outputs has come to.
struct GrammarStats {
  std::int64_t cache_hits = 0;
  std::int64_t cache_misses = 0;
  std::int64_t cache_bytes = 0;
  std::int64_t compile_us = 0;
};

// Safe from any thread.
class Metrics {
 public:
  Metrics(std::string model_name, int max_model_len);

  void first_token(double seconds);
  void token_gap(double seconds);
  void answer_ended(const AnswerRecord& record);
  void admission_rejected();

  std::string text(const EngineStats& engine, const GrammarStats& grammars) const;

 private:
  std::string labels_;
  mutable std::mutex mutex_;
  std::array<std::int64_t, 5> ended_{};  // by FinishReason
  std::int64_t rejected_ = 0;
  Histogram prompt_tokens_, generation_tokens_, max_generation_tokens_, params_max_tokens_, computed_tokens_;
  Histogram params_n_;
  Histogram first_token_, token_gap_, time_per_token_;
  Histogram latency_, queue_, inference_, prefill_, decode_;
};

}  // namespace octavo
