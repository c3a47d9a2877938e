// The ext_proc state machine of one HTTP request: reads the gateway's messages, and writes the responses.
// ExtProcServer owns the gRPC stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/balance/balancer.h"
#include "fleet/balance/flow_gate.h"
#include "fleet/discover/request_rules.h"
#include "fleet/pick/burst_gate.h"
#include "fleet/pick/decision_trace.h"
#include "fleet/pick/model_rewriting.h"
#include "fleet/pick/pick_metrics.h"
#include "fleet/pick/picked_answer.h"
#include "fleet/pick/prompt_renderer.h"
#include "fleet/pick/request_attribute.h"
#include "http/body_budget.h"
#include "http/message.h"

namespace envoy::service::ext_proc::v3 {
class HttpBody;
class ProcessingRequest;
class ProcessingResponse;
}  // namespace envoy::service::ext_proc::v3

namespace octavo::fleet {

namespace ext_proc = envoy::service::ext_proc::v3;

// APIs whose bodies the picker reads. Requests of other APIs go to any endpoint if `passthrough` is set, and
// are refused otherwise.
struct Parsers {
  bool openai = true;
  bool anthropic = true;
  bool vllm = true;
  bool vllm_grpc = true;
  bool sglang = false;
  bool passthrough = true;
};

struct ProcessorOptions {
  Parsers parsers = {};
  std::uint64_t body_bytes_max = 64 << 20;  // a larger body gets the status 413
  // maximum bytes of all bodies in memory; above it, requests get the status 503
  std::uint64_t bodies_bytes_max = 512 << 20;
  bool subset_filter = true;
  bool emit_scores = false;  // report the scores of the picked endpoints to the gateway
  RequestRules rules = {};
  std::optional<FlowGateOptions> flow = {};    // nullopt: requests never wait
  // used without `flow`: if it is saturated, requests with priorities below 0 are refused
  SaturationDetector shedding = UtilizationDetector{};
  int primary_port = 0;           // port that the gateway sends all requests to; 0: each endpoint's own port
  MediaTokens media_tokens = {};  // used if tokens are estimated
  std::vector<RequestAttribute> attributes = {};
  std::shared_ptr<Tracer> tracer = {};  // null: tracing is off
  // responses name the endpoint that served the request, for conformance tests of gateways
  bool reports_served = false;
};

struct ProcessorContext {
  ProcessorContext(Balancer& b, ProcessorOptions o)
      : balancer(b),
        options(std::move(o)),
        bodies(std::make_shared<http::BodyBudget>(options.bodies_bytes_max)),
        rules(std::make_shared<const RequestRules>(options.rules)),
        gate(options.flow ? std::make_unique<FlowGate>(b, *options.flow) : nullptr) {}

  Balancer& balancer;
  const ProcessorOptions options;
  const std::shared_ptr<http::BodyBudget> bodies;
  PickMetrics metrics = {};
  std::atomic<std::shared_ptr<const RequestRules>> rules;  // never null
  const std::unique_ptr<FlowGate> gate;                    // null: requests never wait
  std::unique_ptr<PromptRenderer> renderer = {};           // null: tokens are estimated
  std::unique_ptr<BurstGate> bursts = {};                  // null: the policy does not place bursts
};

class Processor {
 public:
  // `traceparent` is the gateway's trace context of this stream; "": none.
  explicit Processor(ProcessorContext& context, std::string_view traceparent = {});
  ~Processor();  // ends the request if the gateway has not reported its end
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  // Appends the responses to `message`, in the order that the gateway requires. Returns an error if the
  // gateway violates the protocol; the stream must then end.
  Result<> process(const ext_proc::ProcessingRequest& message,
                   std::vector<ext_proc::ProcessingResponse>& answers);

  // Returns whether the request must wait. The caller then calls wait(), and may call process() only after
  // `resume` was called (on any thread) and go_on() has returned. go_on() appends responses, or makes the
  // request wait again. cancel() may be called on any thread at any time.
  bool waits() const { return waiting_.reason != Wait::nothing; }
  void wait(std::function<void()> resume);
  void go_on(std::vector<ext_proc::ProcessingResponse>& answers);
  void cancel();

  // Returns whether the request begins now and can be evicted. The caller then calls evictable() once.
  // `evict` is called on another thread and must cause a call of evict(), which appends the response that
  // ends the request, unless the request has ended.
  bool begins() const;
  void evictable(std::function<void()> evict);
  void evict(std::vector<ext_proc::ProcessingResponse>& answers);

  // Returns whether the request was refused, so that no responses follow.
  bool over() const { return progress_.over; }

 private:
  // How the gateway sends a body and expects the response.
  enum class BodyMode : std::uint8_t { none, full_duplex, buffered, other };
  // Reason why the request waits. The values are in the order in which a request waits: the prompt's tokens,
  // capacity (flow control), and more requests of its burst.
  enum class Wait : std::uint8_t { nothing, tokens, turn, burst };
  struct Waiting {
    Wait reason = Wait::nothing;
    // Used while the request waits in FlowGate:
    std::string fairness_id = {};
    int priority = 0;
    FlowOutcome outcome = FlowOutcome::dispatched;
    // id of the request in FlowGate; 0: the request is not in FlowGate
    std::atomic<std::uint64_t> held = 0;
  };
  struct Progress {
    bool evictable = false;
    std::atomic<bool> cancelled = false;
    bool begun = false;
    bool decided = false;
    bool over = false;
  };
  using Answers = std::vector<ext_proc::ProcessingResponse>;

  Result<> on_request_headers(const ext_proc::ProcessingRequest& message, Answers& answers);
  Result<> on_request_body(const ext_proc::ProcessingRequest& message, Answers& answers);
  void on_request_trailers(Answers& answers);
  void on_response_headers(const ext_proc::ProcessingRequest& message, Answers& answers);
  void on_response_body(const ext_proc::HttpBody& piece, Answers& answers);
  void response_ended();

  // Picks an endpoint. Responds to headers and body with the choice or a refusal.
  void decide(bool has_trailers, Answers& answers);
  void render(std::function<void()> resume);
  void wait_for_turn(Answers& answers);
  void hold(std::function<void()> resume);
  void take_turn(Answers& answers);
  void wait_for_burst(Answers& answers);
  void pick(Answers& answers);
  void rewrite_model();
  bool sheds() const;
  std::optional<std::string_view> header(std::string_view name, std::string_view old_name) const;
  FlowItem flow_item() const;
  std::optional<double> slo_seconds(std::string_view name, std::string_view old_name) const;
  void pick_any(Answers& answers);
  // Adds the choice to the response to the headers. If the body is buffered, adds it to the response to the
  // body.
  void add_choice(Choice choice, Answers& answers);
  void refuse(const Refusal& refusal, Answers& answers);
  void end_with(int status, std::string body, std::string_view dropped_reason, Answers& answers);
  void learn_subset(const ext_proc::ProcessingRequest& message);
  double seconds() const;

  ProcessorContext& context_;
  const std::int64_t arrived_us_;
  DecisionTrace trace_;
  BodyMode request_mode_ = BodyMode::full_duplex;
  BodyMode response_mode_ = BodyMode::full_duplex;
  http::Request request_;  // method, path, headers and the received part of the body
  http::BodyShare body_share_;
  PickedAnswer answer_;
  PickedRequest reported_;
  // emptied when an endpoint is chosen, so it must not be read afterwards
  RouteRequest route_;
  Subset subset_;
  ModelRestorer restorer_;
  bool has_trailers_ = false;
  bool expanded_ = false;
  Waiting waiting_;
  EndpointId burst_home_ = kNoEndpoint;  // result of place_burst()
  Progress progress_;
};

}  // namespace octavo::fleet
