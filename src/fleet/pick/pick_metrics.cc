#include "fleet/pick/pick_metrics.h"

#include <fmt/format.h>

#include <iterator>
#include <tuple>

#include "fleet/observe/metrics_text.h"

namespace octavo::fleet {
namespace {

// Clients choose the models' names, so their number needs a limit. Above the limit, models share the label
// "other".
constexpr std::size_t kModelsMax = 1000;
const std::string kOther = "other";

const std::vector<double> kSeconds{.005, .025, .05, .1, .2, .4, .6, .8, 1,  1.25, 1.5, 2,   3,
                                   4,    5,    6,   8,  10, 15, 20, 30, 45, 60,   120, 180, 240};
const std::vector<double> kDecisionSeconds{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4,
                                           2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2};
const std::vector<double> kTokens{1,    8,    16,    32,    64,    128,    256,    512,    1024,   2048,
                                  4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576};

const std::vector<double> kBytes{64,      128,     256,     512,     1024,    2048,    4096,
                                 8192,    16384,   32768,   65536,   131072,  262144,  524288,
                                 1048576, 2097152, 4194304, 8388608, 1 << 24, 1 << 25, 1 << 26,
                                 1 << 27, 1 << 28, 1 << 29, 1 << 30};
const std::vector<double> kHitBytes{0,    16,   32,   64,   128,   256,   512,
                                    1024, 2048, 4096, 8192, 16384, 32768, 65536};
const std::vector<double> kShares{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
const std::vector<double> kTokenSeconds{.001, .002, .005, .01, .02, .03, .05, .08, .1, .15, .2, .3, .5, 1, 2};
constexpr std::int64_t kBytesOfToken = 4;  // llm-d's estimate

std::string models_of(const std::string& requested, const std::string& target) {
  return label_text({{"model_name", requested}, {"target_model_name", target}});
}

void write_pool(std::string& out, const FleetView& view, const std::string& pool) {
  double ready = 0, waiting = 0, running = 0, kv_usage = 0, adapters = 0;
  CounterFamily queues;
  for (const Member& member : view.members) {
    adapters += static_cast<double>(member.endpoint->adapters.size());
    if (member.state.availability != Availability::available) continue;
    ++ready;
    waiting += member.state.waiting;
    running += member.state.running;
    kv_usage += member.state.kv_usage;
    queues.add(label_text({{"name", pool}, {"model_server_endpoint", member.endpoint->name}}),
               member.state.waiting);
  }
  const double share = ready > 0 ? 1 / ready : 0;
  const std::string labels = pool.empty() ? "" : "{" + label_text({{"name", pool}}) + "}";
  for (const auto& [name, help, value] :
       {std::tuple("ready_endpoints", "Number of endpoints that the picker may choose.", ready),
        {"average_queue_size", "Mean number of requests that wait at an endpoint.", waiting * share},
        {"average_running_requests", "Mean number of requests that run at an endpoint.", running * share},
        {"average_kv_cache_utilization", "Mean fraction of an endpoint's KV cache that is in use.",
         kv_usage * share}})
    fmt::format_to(std::back_inserter(out),
                   "# HELP llm_d_epp_{0} {1}\n# TYPE llm_d_epp_{0} gauge\nllm_d_epp_{0}{2} {3}\n", name, help,
                   labels, value);
  queues.write(out, "llm_d_epp_per_endpoint_queue_size", "Number of requests that wait at each endpoint.",
               "gauge");
  write_gauge(out, "octavo_pick_adapters", "Number of LoRA adapters that all endpoints together report.",
              adapters);
}

}  // namespace

PickMetrics::Requests::Requests()
    : duration(kSeconds),
      first_byte(kSeconds),
      input_tokens(kTokens),
      output_tokens(kTokens),
      cached_tokens(kTokens),
      request_bytes(kBytes),
      response_bytes(kBytes),
      token_seconds(kTokenSeconds) {}

PickMetrics::Decisions::Decisions() : seconds(kDecisionSeconds), hit_ratio(kShares), hit_bytes(kHitBytes) {}

PickMetrics::PickMetrics() = default;

void PickMetrics::stream_opened() {
  const std::lock_guard lock(mutex_);
  ++streams_;
  ++open_streams_;
}

void PickMetrics::stream_closed() {
  const std::lock_guard lock(mutex_);
  --open_streams_;
}

const std::string& PickMetrics::known(const std::string& model) {
  if (models_.size() >= kModelsMax && !models_.contains(model)) return kOther;
  return *models_.insert(model).first;
}

void PickMetrics::began(const std::string& model) {
  const std::lock_guard lock(mutex_);
  requests_.running.add(label_text({{"model_name", known(model)}}), 1);
}

void PickMetrics::decided(const Attempt& attempt) {
  const std::lock_guard lock(mutex_);
  decisions_.seconds.observe(attempt.seconds);
  const std::size_t colon = attempt.endpoint.rfind(':');
  const bool found = colon != std::string::npos;
  decisions_.attempts.add(label_text({{"status", found ? "success" : "failure"},
                                      {"target_model_name", known(attempt.target_model)},
                                      {"endpoint_name", attempt.endpoint.substr(0, found ? colon : 0)},
                                      {"port", found ? attempt.endpoint.substr(colon + 1) : ""}}),
                          1);
  if (!found || attempt.prompt_tokens == 0) return;
  decisions_.hit_ratio.observe(static_cast<double>(attempt.known_tokens) /
                               static_cast<double>(attempt.prompt_tokens));
  decisions_.hit_bytes.observe(static_cast<double>(attempt.known_tokens * kBytesOfToken));
}

void PickMetrics::rendered(bool succeeded) {
  const std::lock_guard lock(mutex_);
  ++renderings_[succeeded ? "ok" : "failed"];
}

void PickMetrics::counted_events(std::size_t events) {
  const std::lock_guard lock(mutex_);
  cache_events_ += static_cast<std::int64_t>(events);
}

void PickMetrics::ended(const PickedRequest& request) {
  const std::lock_guard lock(mutex_);
  const std::string& target = known(request.target_model);
  const std::string models = models_of(known(request.model), target);
  if (request.counted) requests_.running.add(label_text({{"model_name", known(request.model)}}), -1);
  requests_.ended.add(models, 1);
  if (request.status != 200)
    requests_.errors.add(fmt::format("{},error_code=\"{}\"", models, request.status), 1);
  if (!request.split.empty())
    requests_.splits.add(label_text({{"model_name", target}, {"decision_type", request.split}}), 1);
  requests_.duration.observe(models, request.seconds);
  requests_.request_bytes.observe(static_cast<double>(request.request_bytes));
  requests_.response_bytes.observe(static_cast<double>(request.response_bytes));
  if (request.first_byte_seconds >= 0) requests_.first_byte.observe(request.first_byte_seconds);
  for (const auto& [histogram, tokens] : {std::pair(&requests_.input_tokens, request.input_tokens),
                                          {&requests_.output_tokens, request.output_tokens},
                                          {&requests_.cached_tokens, request.cached_tokens}})
    if (tokens >= 0) histogram->observe(static_cast<double>(tokens));
  if (request.status == 200) count_slo(request, models);
}

void PickMetrics::count_slo(const PickedRequest& request, const std::string& models) {
  const double first = request.streamed ? request.first_byte_seconds : request.seconds;
  if (request.ttft_slo_seconds > 0 && first > request.ttft_slo_seconds)
    requests_.slo_violations.add(models + ",type=\"ttft\"", 1);
  if (!request.streamed || request.output_tokens < 2) return;
  const double each = (request.seconds - first) / static_cast<double>(request.output_tokens - 1);
  requests_.token_seconds.observe(each);
  if (request.tpot_slo_seconds > 0 && each > request.tpot_slo_seconds)
    requests_.slo_violations.add(models + ",type=\"tpot\"", 1);
}

void PickMetrics::write_requests(std::string& out) const {
  const Requests& r = requests_;
  r.ended.write(out, "llm_d_epp_request_total", "Requests that have ended.");
  r.errors.write(out, "llm_d_epp_request_error_total", "Requests that ended with a status other than 200.");
  r.running.write(out, "llm_d_epp_request_running", "Requests that have not ended yet.", "gauge");
  r.slo_violations.write(
      out, "llm_d_epp_request_slo_violation_total",
      "Requests that took longer than their header x-llm-d-slo-ttft-ms or x-llm-d-slo-tpot-ms allows.");
  r.splits.write(out, "llm_d_epp_disagg_decision_total",
                 "Requests by type of decision: which endpoints share the work of a request.");
  r.duration.write(out, "llm_d_epp_request_duration_seconds",
                   "Time from a request's headers to the end of its answer.");
  write_histogram(out, "llm_d_epp_request_ttft_seconds",
                  "Time from a request's headers to the first byte of its answer.", r.first_byte);
  write_histogram(out, "llm_d_epp_request_streaming_tpot_seconds",
                  "Mean time per streamed token after the first.", r.token_seconds);
  write_histogram(out, "llm_d_epp_request_input_tokens",
                  "Prompt tokens per request, as the answer reports them in usage.", r.input_tokens);
  write_histogram(out, "llm_d_epp_request_output_tokens",
                  "Output tokens per request, as the answer reports them in usage.", r.output_tokens);
  write_histogram(out, "llm_d_epp_request_cached_tokens",
                  "Cached prompt tokens per request, as the answer reports them in usage.", r.cached_tokens);
  write_histogram(out, "llm_d_epp_request_size_bytes", "Size of the request's body.", r.request_bytes);
  write_histogram(out, "llm_d_epp_response_size_bytes", "Size of the answer's body.", r.response_bytes);
}

void PickMetrics::write_decisions(std::string& out) const {
  write_histogram(out, "llm_d_epp_scheduler_e2e_duration_seconds", "Time to pick an endpoint.",
                  decisions_.seconds);
  decisions_.attempts.write(out, "llm_d_epp_scheduler_attempts_total",
                            "Number of decisions, by the chosen endpoint.");
  write_histogram(out, "llm_d_epp_prefix_indexer_hit_ratio",
                  "Fraction of the prompt that the chosen endpoint has cached.", decisions_.hit_ratio);
  write_histogram(out, "llm_d_epp_prefix_indexer_hit_bytes",
                  "Bytes of the prompt that the chosen endpoint has cached.", decisions_.hit_bytes);
  plugin_times_.write(out);
}

std::string PickMetrics::text(const FleetView& view, const std::string& pool) const {
  std::string out;
  {
    const std::lock_guard lock(mutex_);
    write_requests(out);
    write_decisions(out);
    write_counters(out, "octavo_pick_renderings_total",
                   "Prompts that the picker sent to a server for tokenisation.", "outcome", renderings_);
    write_counter(out, "octavo_pick_cache_events_total", "KV cache events that endpoints sent.",
                  cache_events_);
    write_counter(out, "llm_d_epp_extproc_streams_total", "Streams that the gateway has opened.", streams_);
    write_gauge(out, "llm_d_epp_extproc_streams_inflight", "Streams that are open now.",
                static_cast<double>(open_streams_));
  }
  write_pool(out, view, pool);
  return out;
}

}  // namespace octavo::fleet
