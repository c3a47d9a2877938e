#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

namespace octavo {
namespace {

// 1, 2, 5, 10, 20, 50 ... up to the limit.
std::vector<double> token_bounds(int limit) {
  std::vector<double> bounds;
  for (double decade = 1; decade <= limit; decade *= 10)
    for (const double step : {1.0, 2.0, 5.0})
      if (decade * step <= limit) bounds.push_back(decade * step);
  return bounds;
}

std::vector<double> first_token_bounds() {
  return {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
          1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
}
std::vector<double> token_gap_bounds() {
  return {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
}
std::vector<double> latency_bounds() {
  return {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
}

// Label values escape backslash, quote and line feed.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

double seconds_between(std::int64_t from_us, std::int64_t to_us) {
  return std::max(0.0, static_cast<double>(to_us - from_us) * 1e-6);
}

class Exposition {
 public:
  explicit Exposition(std::string labels) : labels_(std::move(labels)) {}

  void gauge(std::string_view name, std::string_view help, double value) {
    begin(name, help, "gauge");
    line("vllm:{}{{{}}} {}\n", name, labels_, value);
  }

  void counter(std::string_view name, std::string_view help, std::int64_t value) {
    const std::string total = fmt::format("{}_total", name);
    begin(total, help, "counter");
    line("vllm:{}{{{}}} {}\n", total, labels_, value);
  }

  void seconds(std::string_view name, std::string_view help, double value) {
    begin(name, help, "counter");
    line("vllm:{}{{{}}} {}\n", name, labels_, value);
  }

  void begin(std::string_view name, std::string_view help, std::string_view type) {
    line("# HELP vllm:{} {}\n# TYPE vllm:{} {}\n", name, help, name, type);
  }
  void sample(std::string_view name, std::string_view label, std::string_view value, double number) {
    line("vllm:{}{{{},{}=\"{}\"}} {}\n", name, labels_, label, value, number);
  }

  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    begin(name, help, "histogram");
    std::int64_t below = 0;
    const auto counts = histogram.counts();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      below += counts[i];
      const bool last = i + 1 == counts.size();
      const std::string bound = last ? "+Inf" : fmt::format("{}", histogram.bounds()[i]);
      line("vllm:{}_bucket{{{},le=\"{}\"}} {}\n", name, labels_, bound, below);
    }
    line("vllm:{}_sum{{{}}} {}\n", name, labels_, histogram.sum());
    line("vllm:{}_count{{{}}} {}\n", name, labels_, below);
  }

  std::string take() { return std::move(text_); }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  std::string labels_;
  std::string text_;
};

void write_engine(const EngineStats& engine, Exposition& out) {
  out.gauge("num_requests_running", "Requests in the running batch.", engine.running);
  out.gauge("num_requests_waiting", "Requests waiting to be scheduled.", engine.waiting);
  out.gauge("kv_cache_usage_perc", "Share of KV cache blocks owned by requests, 0 to 1.",
            engine.blocks_total > 0 ? static_cast<double>(engine.blocks_used) / engine.blocks_total : 0);
  out.counter("prefix_cache_queries", "Tokens looked up in the prefix cache.", engine.prefix_queries);
  out.counter("prefix_cache_hits", "Tokens found in the prefix cache.", engine.prefix_hits);
  out.counter("num_preemptions", "Times a running request gave its blocks back.", engine.preemptions);
  out.counter("prompt_tokens", "Prompt tokens processed.", engine.prompt_tokens);
  out.counter("prompt_tokens_cached", "Prompt tokens taken from the prefix cache.",
              engine.prompt_tokens_cached);
  out.begin("prompt_tokens_by_source_total", "Prompt tokens processed, by where they came from.", "counter");
  out.sample("prompt_tokens_by_source_total", "source", "local_compute",
             static_cast<double>(engine.prompt_tokens - engine.prompt_tokens_cached));
  out.sample("prompt_tokens_by_source_total", "source", "local_cache_hit",
             static_cast<double>(engine.prompt_tokens_cached));
  out.counter("generation_tokens", "Tokens generated.", engine.generation_tokens);
  out.histogram("iteration_tokens_total", "Tokens that a step computed.", engine.step_tokens);
  out.counter("spec_decode_num_drafts", "Times that guesses of what follows were checked.", engine.drafts);
  out.counter("spec_decode_num_draft_tokens", "Guesses checked.", engine.draft_tokens);
  out.counter("spec_decode_num_accepted_tokens", "Guesses that came true.",
              std::accumulate(engine.accepted_drafts.begin(), engine.accepted_drafts.end(), std::int64_t{0}));
  out.begin("spec_decode_num_accepted_tokens_per_pos_total", "Guesses that came true, by their place.",
            "counter");
  for (std::size_t i = 0; i < engine.accepted_drafts.size(); ++i)
    if (engine.accepted_drafts[i] > 0)
      out.sample("spec_decode_num_accepted_tokens_per_pos_total", "position", std::to_string(i),
                 static_cast<double>(engine.accepted_drafts[i]));
  out.begin("cache_config_info", "The KV cache's configuration, as labels.", "gauge");
  out.sample("cache_config_info", "num_gpu_blocks", std::to_string(engine.blocks_total), 1);
}

void write_grammars(const EngineStats& engine, const GrammarStats& grammars, Exposition& out) {
  out.counter("grammar_cache_hits", "Grammars found in the cache.", grammars.cache_hits);
  out.counter("grammar_cache_misses", "Grammars compiled.", grammars.cache_misses);
  out.gauge("grammar_cache_bytes", "Memory of compiled grammars.", static_cast<double>(grammars.cache_bytes));
  out.seconds("grammar_compile_seconds_total", "Time that compiling grammars took.",
              static_cast<double>(grammars.compile_us) * 1e-6);
  out.counter("grammar_masks", "Token masks filled for answers under a grammar.", engine.grammar_masks);
  out.seconds("grammar_mask_seconds_total", "Time that filling masks took.",
              static_cast<double>(engine.grammar_mask_ns) * 1e-9);
}

}  // namespace

Metrics::Metrics(std::string model_name, int max_model_len)
    : labels_(fmt::format("model_name=\"{}\",engine=\"0\"", escaped(model_name))),
      prompt_tokens_(token_bounds(max_model_len)),
      generation_tokens_(token_bounds(max_model_len)),
      max_generation_tokens_(token_bounds(max_model_len)),
      params_max_tokens_(token_bounds(max_model_len)),
      computed_tokens_(token_bounds(max_model_len)),
      params_n_({1, 2, 5, 10, 20}),
      first_token_(first_token_bounds()),
      token_gap_(token_gap_bounds()),
      time_per_token_(token_gap_bounds()),
      latency_(latency_bounds()),
      queue_(latency_bounds()),
      inference_(latency_bounds()),
      prefill_(latency_bounds()),
      decode_(latency_bounds()) {}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.observe(seconds);
}

void Metrics::token_gap(double seconds) {
  const std::lock_guard lock(mutex_);
  token_gap_.observe(seconds);
}

void Metrics::admission_rejected() {
  const std::lock_guard lock(mutex_);
  ++rejected_;
}

void Metrics::answer_ended(const AnswerRecord& r) {
  const RequestTimes& t = r.times;
  const std::lock_guard lock(mutex_);
  ++ended_[static_cast<std::size_t>(r.reason)];
  prompt_tokens_.observe(r.prompt_tokens);
  generation_tokens_.observe(r.generation_tokens);
  max_generation_tokens_.observe(r.generation_tokens);
  params_max_tokens_.observe(r.max_tokens);
  params_n_.observe(r.n);
  computed_tokens_.observe(std::max(0, r.prompt_tokens - r.cached_tokens));
  if (t.arrived_us == 0) return;
  latency_.observe(seconds_between(t.arrived_us, r.finished_us));
  if (t.scheduled_us == 0) return;
  queue_.observe(seconds_between(t.arrived_us, t.scheduled_us));
  if (t.first_token_us == 0) return;
  const double decode = seconds_between(t.first_token_us, t.last_token_us);
  prefill_.observe(seconds_between(t.scheduled_us, t.first_token_us));
  decode_.observe(decode);
  inference_.observe(seconds_between(t.scheduled_us, t.last_token_us));
  if (r.generation_tokens > 1) time_per_token_.observe(decode / (r.generation_tokens - 1));
}

std::string Metrics::text(const EngineStats& engine, const GrammarStats& grammars) const {
  Exposition out(labels_);
  write_engine(engine, out);
  write_grammars(engine, grammars, out);
  const std::lock_guard lock(mutex_);
  out.begin("request_success_total", "Answers that have ended.", "counter");
  for (std::size_t i = 0; i < ended_.size(); ++i)
    out.sample("request_success_total", "finished_reason", name(static_cast<FinishReason>(i)),
               static_cast<double>(ended_[i]));
  out.begin("admission_rejections_total", "Requests refused because a queue was full.", "counter");
  out.sample("admission_rejections_total", "reason", "max_num_queued_reqs", static_cast<double>(rejected_));
  out.histogram("request_prompt_tokens", "Prompt tokens of a request.", prompt_tokens_);
  out.histogram("request_generation_tokens", "Tokens generated for an answer.", generation_tokens_);
  out.histogram("request_max_num_generation_tokens", "Most tokens generated for a request.",
                max_generation_tokens_);
  out.histogram("request_params_max_tokens", "The max_tokens parameter.", params_max_tokens_);
  out.histogram("request_params_n", "The n parameter.", params_n_);
  out.histogram("request_prefill_kv_computed_tokens", "Prompt tokens computed, not found in the cache.",
                computed_tokens_);
  out.histogram("time_to_first_token_seconds", "From arrival to the first token.", first_token_);
  out.histogram("inter_token_latency_seconds", "Between two outputs of an answer.", token_gap_);
  out.histogram("request_time_per_output_token_seconds", "Mean time per token after the first.",
                time_per_token_);
  out.histogram("e2e_request_latency_seconds", "From arrival to the end.", latency_);
  out.histogram("request_queue_time_seconds", "Waiting to be scheduled.", queue_);
  out.histogram("request_inference_time_seconds", "From being scheduled to the last token.", inference_);
  out.histogram("request_prefill_time_seconds", "From being scheduled to the first token.", prefill_);
  out.histogram("request_decode_time_seconds", "From the first token to the last.", decode_);
  return out.take();
}

}  // namespace octavo
