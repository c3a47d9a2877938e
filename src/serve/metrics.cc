#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include "base/member_path.h"
#include "request/prometheus_text.h"
#include "serve/session_metrics.h"

namespace octavo {
namespace {

// Returns the bounds of a histogram: 1, 2, 5, 10, 20, 50 and so on, up to the limit.
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

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double seconds_between(std::int64_t from_us, std::int64_t to_us) {
  return std::max(0.0, static_cast<double>(to_us - from_us) * 1e-6);
}

// Groups the text by metric, because Prometheus requires all lines of a metric to follow its HELP and TYPE.
class Exposition {
 public:
  // labels: one element for each engine. The functions below take their items in the same order.
  explicit Exposition(std::vector<std::string> labels) : labels_(std::move(labels)) {}

  template <class Items, class Value>
  void gauge(std::string_view name, std::string_view help, const Items& items, Value&& value) {
    begin(name, help, "gauge");
    samples(name, items, value);
  }
  template <class Items, class Value>
  void counter(std::string_view name, std::string_view help, const Items& items, Value&& value) {
    const std::string total = fmt::format("{}_total", name);
    begin(total, help, "counter");
    samples(total, items, value);
  }
  template <class Items, class Which>
  void histogram(std::string_view name, std::string_view help, const Items& items, Which&& which) {
    begin(name, help, "histogram");
    const std::string full = fmt::format("vllm:{}", name);
    for (std::size_t i = 0; i < std::size(items); ++i)
      append_histogram(text_, full, labels_[i], std::invoke(which, items[i]));
  }

  void begin(std::string_view name, std::string_view help, std::string_view type) {
    line("# HELP vllm:{} {}\n# TYPE vllm:{} {}\n", name, help, name, type);
  }
  void sample(std::string_view name, std::size_t engine, std::string_view label, std::string_view value,
              double number) {
    line("vllm:{}{{{},{}=\"{}\"}} {}\n", name, labels_[engine], label, value, number);
  }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  const std::string& labels(std::size_t engine) const { return labels_[engine]; }
  std::string take() { return std::move(text_); }

 private:
  template <class Items, class Value>
  void samples(std::string_view name, const Items& items, Value&& value) {
    for (std::size_t i = 0; i < std::size(items); ++i)
      line("vllm:{}{{{}}} {}\n", name, labels_[i], std::invoke(value, items[i]));
  }
  std::vector<std::string> labels_;
  std::string text_;
};

using Engines = std::span<const EngineStats>;

void write_waiting(Engines engines, Exposition& out) {
  constexpr std::string_view kName = "num_requests_waiting_by_reason";
  out.begin(kName,
            "Requests that wait to be scheduled, by reason: the engine is full (capacity), or the request "
            "waits for its grammar, adapter, images or KV blocks (deferred).",
            "gauge");
  for (std::size_t i = 0; i < engines.size(); ++i) {
    out.sample(kName, i, "reason", "capacity", engines[i].requests.waiting - engines[i].requests.deferred);
    out.sample(kName, i, "reason", "deferred", engines[i].requests.deferred);
  }
}

// Returns the number of cached prompt tokens that were loaded from other engines or tiers.
std::int64_t loaded_tokens(const EngineStats& engine) {
  const auto& used = engine.kv_transfer.used_by_source;
  return std::accumulate(used.begin(), used.end(), std::int64_t{0});
}

void write_prompt_sources(Engines engines, Exposition& out) {
  out.begin("prompt_tokens_by_source_total", "Prompt tokens by source: computed, cached, loaded.", "counter");
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const EngineStats& e = engines[i];
    out.sample("prompt_tokens_by_source_total", i, "source", "local_compute",
               static_cast<double>(e.tokens.prompt - e.tokens.prompt_cached));
    const std::int64_t external = loaded_tokens(e);
    out.sample("prompt_tokens_by_source_total", i, "source", "local_cache_hit",
               static_cast<double>(e.tokens.prompt_cached - external));
    out.sample("prompt_tokens_by_source_total", i, "source", "external_kv_transfer",
               static_cast<double>(external));
  }
}

void write_cached_sources(Engines engines, Exposition& out) {
  constexpr std::string_view kName = "prompt_tokens_cached_by_source_total";
  out.begin(kName,
            "Cached prompt tokens, by source: this engine's cache (device), another engine (peer), host "
            "memory (host), or a disk or store (disk).",
            "counter");
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const EngineStats& e = engines[i];
    out.sample(kName, i, "source", "device", static_cast<double>(e.tokens.prompt_cached - loaded_tokens(e)));
    for (std::size_t source = 0; source < kKvSourceNames.size(); ++source)
      out.sample(kName, i, "source", kKvSourceNames[source],
                 static_cast<double>(e.kv_transfer.used_by_source[source]));
  }
}

void write_residency(Engines engines, Exposition& out) {
  const auto of = [](auto KvResidencyStats::* which) {
    return [=](const EngineStats& e) -> const auto& { return e.kv_residency.*which; };
  };
  out.histogram("kv_block_lifetime_seconds",
                "Time from the allocation of a KV block to its eviction (sampled).", engines,
                of(&KvResidencyStats::lifetime));
  out.histogram("kv_block_idle_before_evict_seconds",
                "Time from the last use of a KV block to its eviction (sampled).", engines,
                of(&KvResidencyStats::idle_before_evict));
  out.histogram("kv_block_reuse_gap_seconds", "Time between two uses of a KV block (sampled).", engines,
                of(&KvResidencyStats::reuse_gap));
}

void write_work(Engines engines, Exposition& out) {
  const auto of = [](double WorkStats::* which) {
    return [=](const EngineStats& e) { return e.work.*which; };
  };
  out.counter("estimated_flops_per_gpu", "Estimated floating-point operations per device.", engines,
              of(&WorkStats::operations));
  out.counter("estimated_read_bytes_per_gpu", "Estimated bytes that a device read from its memory.", engines,
              of(&WorkStats::read_bytes));
  out.counter("estimated_write_bytes_per_gpu", "Estimated bytes that a device wrote to its memory.", engines,
              of(&WorkStats::written_bytes));
}

void write_media_cache(Engines engines, Exposition& out) {
  out.counter("mm_cache_queries", "Images and sounds looked up in the cache of encoded media.", engines,
              [](const EngineStats& e) { return e.media_cache.queries; });
  out.counter("mm_cache_hits", "Images and sounds found in the cache of encoded media.", engines,
              [](const EngineStats& e) { return e.media_cache.hits; });
}

void write_drafts(Engines engines, Exposition& out) {
  using Stats = EngineStats;
  out.counter("spec_decode_num_drafts", "Number of times that the model verified draft tokens.", engines,
              member_path<&Stats::drafts, &DraftStats::drafts>);
  out.counter("spec_decode_num_draft_tokens", "Draft tokens that the model verified.", engines,
              member_path<&Stats::drafts, &DraftStats::tokens>);
  out.counter("spec_decode_num_accepted_tokens", "Draft tokens that the model accepted.", engines,
              [](const Stats& e) {
                return std::accumulate(e.drafts.accepted.begin(), e.drafts.accepted.end(), std::int64_t{0});
              });
  out.begin("spec_decode_num_accepted_tokens_per_pos_total", "Accepted draft tokens by position.", "counter");
  for (std::size_t i = 0; i < engines.size(); ++i)
    for (std::size_t place = 0; place < engines[i].drafts.accepted.size(); ++place)
      if (engines[i].drafts.accepted[place] > 0)
        out.sample("spec_decode_num_accepted_tokens_per_pos_total", i, "position", std::to_string(place),
                   static_cast<double>(engines[i].drafts.accepted[place]));
}

void write_engines(Engines engines, const EngineInfo& info, Exposition& out) {
  using Stats = EngineStats;
  out.gauge("num_requests_running", "Requests that are running.", engines,
            member_path<&Stats::requests, &RequestStats::running>);
  out.gauge("num_requests_waiting", "Requests that wait to be scheduled.", engines,
            member_path<&Stats::requests, &RequestStats::waiting>);
  write_waiting(engines, out);
  out.gauge("kv_cache_usage_perc", "Fraction of KV cache blocks in use, from 0 to 1.", engines,
            [](const Stats& e) {
              return e.blocks.total > 0 ? static_cast<double>(e.blocks.used) / e.blocks.total : 0;
            });
  out.counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", engines,
              member_path<&Stats::prefix_cache, &PrefixCacheStats::queries>);
  out.counter("prefix_cache_hits", "Prompt tokens found in the prefix cache.", engines,
              member_path<&Stats::prefix_cache, &PrefixCacheStats::hits>);
  out.counter("num_preemptions", "Number of times that a running request was preempted.", engines,
              &Stats::preemptions);
  out.counter("prompt_tokens", "Prompt tokens processed.", engines,
              member_path<&Stats::tokens, &TokenStats::prompt>);
  out.counter("prompt_tokens_cached", "Prompt tokens read from the prefix cache.", engines,
              member_path<&Stats::tokens, &TokenStats::prompt_cached>);
  write_prompt_sources(engines, out);
  write_cached_sources(engines, out);
  write_media_cache(engines, out);
  out.counter("kv_kept_blocks", "KV blocks that an engine kept from an earlier engine process.", engines,
              member_path<&Stats::kept_blocks, &KeptBlockStats::kept>);
  out.counter("kv_kept_discarded_blocks",
              "KV blocks of an earlier engine process that were incomplete or damaged.", engines,
              member_path<&Stats::kept_blocks, &KeptBlockStats::discarded>);
  out.counter("generation_tokens", "Tokens generated.", engines,
              member_path<&Stats::tokens, &TokenStats::generation>);
  out.histogram("iteration_tokens_total", "Prompt tokens and output tokens that a step computed.", engines,
                &Stats::step_tokens);
  write_drafts(engines, out);
  out.begin("cache_config_info", "Configuration of the KV cache, as labels.", "gauge");
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const std::int64_t tokens = std::int64_t{engines[i].blocks.total} * info.block_size;
    const double requests = info.max_model_len > 0 ? static_cast<double>(tokens) / info.max_model_len : 0;
    out.line(
        "vllm:cache_config_info{{{},block_size=\"{}\",num_gpu_blocks=\"{}\",kv_cache_size_tokens=\"{}\","
        "kv_cache_max_concurrency=\"{:.2f}\"}} 1\n",
        out.labels(i), info.block_size, engines[i].blocks.total, tokens, requests);
  }
}

// As in vLLM, the adapters with unfinished answers are in the labels, and the value is the current time.
void write_adapters(Engines engines, int max_loras, Exposition& out) {
  out.begin("lora_requests_info", "LoRA adapters with unfinished requests, as labels.", "gauge");
  for (std::size_t i = 0; i < engines.size(); ++i) {
    std::string running, waiting;
    for (const AdapterStats& adapter : engines[i].adapters)
      for (const auto& [count, names] : {std::pair(adapter.running, &running), std::pair(adapter.waiting, &waiting)})
        if (count > 0) *names += (names->empty() ? "" : ",") + escaped_label(adapter.name);
    out.line("vllm:lora_requests_info{{max_lora=\"{}\",running_lora_adapters=\"{}\",waiting_lora_adapters=\"{}\"}} {}\n",
             max_loras, running, waiting, seconds_since_1970());
  }
}

void write_kv_transfers(Engines engines, Exposition& out) {
  using Stats = EngineStats;
  const auto of = [](auto KvTransferStats::*which) {
    return [=](const Stats& e) -> const auto& { return e.kv_transfer.*which; };
  };
  const auto failed = [](const Stats& e) {
    return std::accumulate(e.kv_transfer.failures.begin(), e.kv_transfer.failures.end(), std::int64_t{0});
  };
  out.counter("external_prefix_cache_queries", "Prompt tokens looked up in another engine or a cache tier.",
              engines, of(&KvTransferStats::queries));
  out.counter("external_prefix_cache_hits", "Prompt tokens loaded from another engine or a cache tier.",
              engines, of(&KvTransferStats::hits));
  out.histogram("nixl_xfer_time_seconds", "Time to fetch the KV blocks of a request.", engines,
                of(&KvTransferStats::seconds));
  out.histogram("nixl_bytes_transferred", "Bytes of KV blocks fetched for a request.", engines,
                of(&KvTransferStats::bytes));
  out.histogram("nixl_num_descriptors", "KV blocks fetched for a request.", engines,
                of(&KvTransferStats::blocks));
  out.counter("nixl_num_failed_transfers", "Requests computed here because a fetch of KV blocks failed.",
              engines, failed);
  out.counter("nixl_num_kv_expired_reqs", "Requests whose KV blocks were not fetched in time.", engines,
              of(&KvTransferStats::expired));
  out.gauge("kv_transfer_held_blocks",
            "KV blocks held for other engines, for writes to a tier, and for requests that wait for blocks.",
            engines, of(&KvTransferStats::held_blocks));
  out.begin("kv_transfer_failures_total", "Failed transfers, by reason.", "counter");
  for (std::size_t i = 0; i < engines.size(); ++i)
    for (std::size_t reason = 0; reason < kKvTransferFailureNames.size(); ++reason)
      out.sample("kv_transfer_failures_total", i, "reason", kKvTransferFailureNames[reason],
                 static_cast<double>(engines[i].kv_transfer.failures[reason]));
}

void write_sleep_states(Engines engines, Exposition& out) {
  constexpr std::array<std::string_view, 3> kStates{"awake", "weights_offloaded", "discard_all"};
  out.begin("engine_sleep_state", "1 for the engine's current state (awake or a level of /sleep), else 0.",
            "gauge");
  for (std::size_t i = 0; i < engines.size(); ++i)
    for (std::size_t level = 0; level < kStates.size(); ++level)
      out.sample("engine_sleep_state", i, "sleep_state", kStates[level],
                 engines[i].condition.sleep_level == static_cast<int>(level) ? 1 : 0);
}

// A tier: its stats, its location, and vLLM's names for the transfers to it and from it.
struct TierName {
  KvTierStats EngineStats::* stats;
  std::string_view name, to_tier, from_tier;
};
constexpr std::array kTiers{TierName{&EngineStats::kv_host_tier, "CPU", "GPU_to_CPU", "CPU_to_GPU"},
                            TierName{&EngineStats::kv_tier, "STORAGE", "CPU_to_STORAGE", "STORAGE_to_CPU"}};

bool has_tiers(const EngineStats& engine) {
  return std::ranges::any_of(kTiers, [&](const TierName& tier) { return (engine.*tier.stats).enabled; });
}

void write_kv_tiers(Engines engines, Exposition& out) {
  using Tier = KvTierStats;
  const auto for_each = [&](auto&& write) {
    for (std::size_t i = 0; i < engines.size(); ++i)
      for (const TierName& name : kTiers)
        if (const Tier& tier = engines[i].*name.stats; tier.enabled) write(i, name, tier);
  };
  const auto both_ways = [&](std::string_view name, std::string_view help, auto Tier::* stored,
                             auto Tier::* loaded) {
    out.begin(name, help, "counter");
    for_each([&](std::size_t i, const TierName& tier, const Tier& stats) {
      out.sample(name, i, "transfer_type", tier.to_tier, static_cast<double>(stats.*stored));
      out.sample(name, i, "transfer_type", tier.from_tier, static_cast<double>(stats.*loaded));
    });
  };
  const auto each = [&](std::string_view name, std::string_view help, std::string_view type, auto&& value) {
    out.begin(name, help, type);
    for_each([&](std::size_t i, const TierName& tier, const Tier& stats) {
      out.sample(name, i, "tier", tier.name, static_cast<double>(std::invoke(value, stats)));
    });
  };
  both_ways("kv_offload_total_bytes_total", "Bytes of KV blocks moved to or from a tier, by direction.",
            &Tier::stored_bytes, &Tier::loaded_bytes);
  both_ways("kv_offload_total_time_total", "Seconds to move KV blocks to or from a tier, by direction.",
            &Tier::store_seconds, &Tier::load_seconds);
  each("kv_tier_blocks", "KV blocks in host memory (CPU) or on disk (STORAGE).", "gauge", &Tier::blocks);
  each("kv_tier_usage_bytes", "Bytes of the KV blocks in a tier.", "gauge",
       [](const Tier& tier) { return tier.blocks * tier.block_bytes; });
  each("kv_tier_size_bytes", "Maximum bytes of the KV blocks in a tier.", "gauge", &Tier::bytes_max);
  each("kv_tier_off", "1 if an error turned the tier off, else 0.", "gauge", &Tier::off);
  each("kv_tier_stored_blocks_total", "KV blocks written to a tier.", "counter", &Tier::stored_blocks);
  each("kv_tier_evicted_blocks_total", "KV blocks evicted from a tier.", "counter", &Tier::evicted_blocks);
  each("kv_tier_dropped_blocks_total", "KV blocks not written because the tier was too slow.", "counter",
       &Tier::dropped_stores);
  each("kv_tier_skipped_loads_total", "Prompts computed because loading their KV blocks would take longer.",
       "counter", &Tier::skipped_loads);
}

void write_grammars(Engines engines, Exposition& out) {
  const auto of = [](std::int64_t GrammarStats::* which, double unit = 1) {
    return [=](const EngineStats& e) { return static_cast<double>(e.grammars.*which) * unit; };
  };
  using Stats = GrammarStats;
  out.counter("grammar_cache_hits", "Grammars that were found in the cache.", engines,
              of(&Stats::cache_hits));
  out.counter("grammar_cache_misses", "Grammars that were compiled.", engines, of(&Stats::cache_misses));
  out.gauge("grammar_cache_bytes", "Bytes of compiled grammars.", engines, of(&Stats::cache_bytes));
  out.counter("grammar_compile_seconds", "Seconds that compiling grammars took.", engines,
              of(&Stats::compile_us, 1e-6));
  out.counter("grammar_masks", "Token masks computed for answers with a grammar.", engines,
              of(&Stats::masks));
  out.counter("grammar_mask_seconds", "Seconds that computing token masks took.", engines,
              of(&Stats::mask_ns, 1e-9));
  out.counter("grammar_masks_deferred", "Token masks not ready in time, so their sequence missed a step.",
              engines, of(&Stats::masks_deferred));
}

}  // namespace

Metrics::Answers::Answers(int max_model_len)
    : prompt_tokens(token_bounds(max_model_len)),
      generation_tokens(token_bounds(max_model_len)),
      max_generation_tokens(token_bounds(max_model_len)),
      params_max_tokens(token_bounds(max_model_len)),
      computed_tokens(token_bounds(max_model_len)),
      params_n({1, 2, 5, 10, 20}),
      preemptions({1, 2, 3, 4, 5, 10, 20}),
      first_token(first_token_bounds()),
      token_gap(token_gap_bounds()),
      time_per_token(token_gap_bounds()),
      latency(latency_bounds()),
      queue(latency_bounds()),
      inference(latency_bounds()),
      prefill(latency_bounds()),
      decode(latency_bounds()) {}

Metrics::Metrics(std::string model_name, int max_model_len, AccountOptions account_options)
    : accounts(std::move(account_options)),
      model_name_(escaped_label(model_name)),
      max_model_len_(max_model_len) {}

Metrics::Answers& Metrics::of(int engine) {
  while (engines_.size() <= static_cast<std::size_t>(engine)) engines_.emplace_back(max_model_len_);
  return engines_[static_cast<std::size_t>(engine)];
}

void Metrics::first_token(int engine, double seconds) {
  const std::lock_guard lock(mutex_);
  of(engine).first_token.observe(seconds);
}

void Metrics::token_gap(int engine, double seconds) {
  const std::lock_guard lock(mutex_);
  of(engine).token_gap.observe(seconds);
}

void Metrics::admission_rejected() {
  const std::lock_guard lock(mutex_);
  ++rejected_;
}

void Metrics::answer_ended(const AnswerRecord& r) {
  const RequestTimes& t = r.times;
  const std::lock_guard lock(mutex_);
  Answers& all = of(r.engine);
  ++all.ended[static_cast<std::size_t>(r.reason)];
  all.prompt_tokens.observe(r.prompt_tokens);
  all.generation_tokens.observe(r.generation_tokens);
  all.max_generation_tokens.observe(r.generation_tokens);
  all.params_max_tokens.observe(r.max_tokens);
  all.params_n.observe(r.n);
  all.preemptions.observe(r.preemptions);
  all.computed_tokens.observe(std::max(0, r.prompt_tokens - r.cached_tokens));
  if (t.arrived_us == 0) return;
  all.latency.observe(seconds_between(t.arrived_us, r.finished_us));
  if (t.scheduled_us == 0) return;
  all.queue.observe(seconds_between(t.arrived_us, t.scheduled_us));
  if (t.first_token_us == 0) return;
  const double decode = seconds_between(t.first_token_us, t.last_token_us);
  all.prefill.observe(seconds_between(t.scheduled_us, t.first_token_us));
  all.decode.observe(decode);
  all.inference.observe(seconds_between(t.scheduled_us, t.last_token_us));
  if (r.generation_tokens > 1) all.time_per_token.observe(decode / (r.generation_tokens - 1));
}

Metrics::Latencies Metrics::latencies(int engine) const {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(engine);
  const Answers& all = index < engines_.size() ? engines_[index] : Answers(max_model_len_);
  return {all.first_token, all.token_gap};
}

std::string Metrics::text(std::span<const EngineStats> engines, const EngineInfo& info) const {
  std::vector<std::string> labels;
  for (const EngineStats& e : engines)
    labels.push_back(fmt::format("model_name=\"{}\",engine=\"{}\"", model_name_, e.engine));
  Exposition out(std::move(labels));
  write_engines(engines, info, out);
  write_grammars(engines, out);
  write_sleep_states(engines, out);
  if (info.max_loras > 0) write_adapters(engines, info.max_loras, out);
  const auto any = [&](auto&& is) { return std::ranges::any_of(engines, is); };
  if (any([](const EngineStats& e) { return e.kv_transfer.enabled; })) write_kv_transfers(engines, out);
  if (any(has_tiers)) write_kv_tiers(engines, out);
  if (any([](const EngineStats& e) { return e.kv_residency.enabled; })) write_residency(engines, out);
  if (std::ranges::any_of(engines, [](const EngineStats& e) { return e.work.enabled; }))
    write_work(engines, out);
  std::vector<Answers> answers;
  {
    const std::lock_guard lock(mutex_);
    for (const EngineStats& e : engines) {
      const auto index = static_cast<std::size_t>(e.engine);
      answers.push_back(index < engines_.size() ? engines_[index] : Answers(max_model_len_));
    }
    out.begin("admission_rejections_total", "Requests that were refused because a queue was full.",
              "counter");
    out.sample("admission_rejections_total", 0, "reason", "max_num_queued_reqs",
               static_cast<double>(rejected_));
  }
  out.begin("request_success_total", "Answers that have ended.", "counter");
  for (std::size_t i = 0; i < answers.size(); ++i)
    for (std::size_t reason = 0; reason < answers[i].ended.size(); ++reason)
      out.sample("request_success_total", i, "finished_reason", name(static_cast<FinishReason>(reason)),
                 static_cast<double>(answers[i].ended[reason]));
  const auto histogram = [&](std::string_view name, std::string_view help, Histogram Answers::*which) {
    out.histogram(name, help, answers, which);
  };
  histogram("request_prompt_tokens", "Prompt tokens of a request.", &Answers::prompt_tokens);
  histogram("request_generation_tokens", "Tokens generated for an answer.", &Answers::generation_tokens);
  histogram("request_max_num_generation_tokens", "Tokens of a request's longest answer.",
            &Answers::max_generation_tokens);
  histogram("request_params_max_tokens", "Value of max_tokens in a request.", &Answers::params_max_tokens);
  histogram("request_params_n", "Value of n in a request.", &Answers::params_n);
  histogram("request_num_preemptions", "Number of preemptions of an answer.", &Answers::preemptions);
  histogram("request_prefill_kv_computed_tokens", "Uncached prompt tokens.", &Answers::computed_tokens);
  histogram("time_to_first_token_seconds", "Time from arrival to first token.", &Answers::first_token);
  histogram("inter_token_latency_seconds", "Time between two outputs of an answer.", &Answers::token_gap);
  histogram("request_time_per_output_token_seconds", "Mean time per output token after the first one.",
            &Answers::time_per_token);
  histogram("e2e_request_latency_seconds", "Time from a request's arrival to its end.", &Answers::latency);
  histogram("request_queue_time_seconds", "Time that a request waits to be scheduled.", &Answers::queue);
  histogram("request_inference_time_seconds", "Time from first step to last token.", &Answers::inference);
  histogram("request_prefill_time_seconds", "Time from first step to first token.", &Answers::prefill);
  histogram("request_decode_time_seconds", "Time from first to last token.", &Answers::decode);
  return out.take() + accounts.metrics() + compute_metrics(engines, model_name_) +
         session_metrics(engines, model_name_);
}

}  // namespace octavo
