#include "fleet/pick/pick_metrics.h"

#include <algorithm>

#include "fleet/observe/metrics_text.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kModelsMax = 1000;  // clients choose the names: models above this number count as one
const std::string kOther = "other";

const std::vector<double> kSeconds{.005, .025, .05, .1, .2, .4, .6, .8, 1,  1.25, 1.5, 2,   3,
                                   4,    5,    6,   8,  10, 15, 20, 30, 45, 60,   120, 180, 240};
const std::vector<double> kDecisionSeconds{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4,
                                           2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2};
const std::vector<double> kTokens{1,    8,    16,    32,    64,    128,    256,    512,    1024,   2048,
                                  4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576};

}  // namespace

PickMetrics::PickMetrics()
    : duration_(kSeconds),
      first_byte_(kSeconds),
      decision_(kDecisionSeconds),
      input_tokens_(kTokens),
      output_tokens_(kTokens) {}

void PickMetrics::stream_opened() {
  const std::lock_guard lock(mutex_);
  ++streams_;
  ++open_streams_;
}

void PickMetrics::stream_closed() {
  const std::lock_guard lock(mutex_);
  --open_streams_;
}

void PickMetrics::decided(double seconds) {
  const std::lock_guard lock(mutex_);
  decision_.observe(seconds);
}

void PickMetrics::rendered(bool succeeded) {
  const std::lock_guard lock(mutex_);
  ++renderings_[succeeded ? "ok" : "failed"];
}

void PickMetrics::told(std::size_t events) {
  const std::lock_guard lock(mutex_);
  cache_events_ += static_cast<std::int64_t>(events);
}

void PickMetrics::ended(const PickedRequest& request) {
  const std::lock_guard lock(mutex_);
  Models models{request.model, request.target_model};
  if (requests_.size() >= kModelsMax && !requests_.contains(models)) models = {kOther, kOther};
  ++requests_[models];
  if (request.status != 200) ++errors_[models];
  duration_.observe(request.seconds);
  if (request.first_byte_seconds >= 0) first_byte_.observe(request.first_byte_seconds);
  if (request.input_tokens >= 0) input_tokens_.observe(static_cast<double>(request.input_tokens));
  if (request.output_tokens >= 0) output_tokens_.observe(static_cast<double>(request.output_tokens));
}

void PickMetrics::write(std::string& out, std::string_view name, std::string_view help,
                        const Counts& counts) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} counter\n", name, help);
  for (const auto& [models, count] : counts)
    fmt::format_to(std::back_inserter(out), "{}{{model_name=\"{}\",target_model_name=\"{}\"}} {}\n", name,
                   escaped_label(models.asked), escaped_label(models.target), count);
}

std::string PickMetrics::text(const FleetView& view) const {
  std::string out;
  {
    const std::lock_guard lock(mutex_);
    write(out, "llm_d_epp_request_total", "Requests that ended.", requests_);
    write(out, "llm_d_epp_request_error_total", "Those that did not end with 200.", errors_);
    write_histogram(out, "llm_d_epp_request_duration_seconds",
                    "From a request's headers to its answer's end.", duration_);
    write_histogram(out, "llm_d_epp_request_ttft_seconds",
                    "From a request's headers to its answer's first byte.", first_byte_);
    write_histogram(out, "llm_d_epp_request_input_tokens", "Prompt tokens, as usage says.", input_tokens_);
    write_histogram(out, "llm_d_epp_request_output_tokens", "Tokens of answers, as usage says.",
                    output_tokens_);
    write_histogram(out, "llm_d_epp_scheduler_e2e_duration_seconds", "Time to pick an endpoint.", decision_);
    write_counters(out, "octavo_pick_renderings_total", "Prompts that a server was asked to tokenise.",
                   "outcome", renderings_);
    write_counter(out, "octavo_pick_cache_events_total", "What endpoints told of their prefix caches.",
                  cache_events_);
    write_counter(out, "llm_d_epp_extproc_streams_total", "Streams that the gateway opened.", streams_);
    write_gauge(out, "llm_d_epp_extproc_streams_inflight", "Those that are open.",
                static_cast<double>(open_streams_));
  }
  double ready = 0, waiting = 0, running = 0, kv_usage = 0, adapters = 0;
  for (const Member& member : view.members) {
    adapters += static_cast<double>(member.endpoint->adapters.size());
    if (member.state.availability != Availability::available) continue;
    ++ready;
    waiting += member.state.waiting;
    running += member.state.running;
    kv_usage += member.state.kv_usage;
  }
  const double share = ready > 0 ? 1 / ready : 0;
  write_gauge(out, "llm_d_epp_ready_endpoints", "Endpoints that may be picked.", ready);
  write_gauge(out, "llm_d_epp_average_queue_size", "Requests waiting at an endpoint.", waiting * share);
  write_gauge(out, "llm_d_epp_average_running_requests", "Requests running at an endpoint.", running * share);
  write_gauge(out, "llm_d_epp_average_kv_cache_utilization", "Share of an endpoint's KV cache in use.",
              kv_usage * share);
  write_gauge(out, "octavo_pick_adapters", "LoRA adapters that endpoints say they serve, all together.",
              adapters);
  return out;
}

}  // namespace octavo::fleet
