// State machine of ext_proc for one HTTP request: reads the gateway's messages, and makes the answers. Has no
// gRPC.
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

// Routes whose bodies are read. Requests to other routes are refused, or sent to any endpoint.
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
  std::uint64_t body_bytes_max = 64 << 20;     // maximum bytes of a body; above it: status 413
  std::uint64_t bodies_bytes_max = 512 << 20;  // maximum bytes of all bodies in memory; above it: status 503
  bool subset_filter = true;                   // use the endpoints that the gateway allows
  bool emit_scores = false;                    // report scores of the picked endpoints to the gateway
  RequestRules rules = {};                     // initial rules
  std::optional<FlowGateOptions> flow = {};    // nullopt: requests never wait
  SaturationDetector shedding =
      // without `flow`: when it is saturated, requests with priorities below 0 are refused
      UtilizationDetector{};
  int primary_port = 0;           // port to which the gateway sends all requests; 0: the port of the endpoint
  MediaTokens media_tokens = {};  // for estimated tokens
  std::vector<RequestAttribute> attributes = {};  // numbers to report to the gateway with each answer
  std::shared_ptr<Tracer> tracer = {};            // null: no spans
  // answers name the endpoint that served the request, for conformance tests of gateways
  bool tells_served = false;
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
  std::unique_ptr<BurstGate> bursts = {};                  // null: no bursts
};

class Processor {
 public:
  // traceparent: the gateway's trace context of this stream; "": none.
  explicit Processor(ProcessorContext& context, std::string_view traceparent = {});
  ~Processor();  // ends the request if no end was reported
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  // Appends the answers to `message`, in the order that the gateway requires. An error ends the stream: the
  // gateway violates the protocol.
  Result<> process(const ext_proc::ProcessingRequest& message,
                   std::vector<ext_proc::ProcessingResponse>& answers);

  // Returns whether the request must wait. If so, call wait(), and do not call process() before `resume` was
  // called (on any thread). Then call go_on(), which appends answers or makes the request wait again.
  // cancel() is thread-safe, at any time.
  bool waits() const { return waiting_.reason != Wait::nothing; }
  void wait(std::function<void()> resume);
  void go_on(std::vector<ext_proc::ProcessingResponse>& answers);
  void cancel();

  // Returns whether the request starts now and can be evicted. If so, call evictable() once. `evict` is
  // called on another thread; it must lead to evict(), which appends the answer that ends the request, unless
  // it has ended.
  bool begins() const;
  void evictable(std::function<void()> evict);
  void evict(std::vector<ext_proc::ProcessingResponse>& answers);

  // The request is refused, and no answers follow.
  bool over() const { return progress_.over; }

 private:
  // How the gateway sends a body, and where it expects the answer.
  enum class BodyMode : std::uint8_t { none, full_duplex, buffered, other };
  // The reason for waiting, in this order: the tokens of its prompt, capacity (flow control), other
  // requests of its burst.
  enum class Wait : std::uint8_t { nothing, tokens, turn, burst };
  struct Waiting {
    Wait reason = Wait::nothing;
    // Fields for the flow gate:
    std::string fairness_id = {};
    int priority = 0;
    FlowOutcome outcome = FlowOutcome::dispatched;
    std::atomic<std::uint64_t> held = 0;  // id of the request at the gate; 0: not there
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

  // Picks an endpoint. Answers headers and body with the choice or a refusal.
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
  // Adds the choice to the answer to the headers or, for a buffered body, to the body.
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
  PickedRequest told_;
  RouteRequest route_;  // valid until an endpoint is picked
  Subset subset_;
  ModelRestorer restorer_;
  bool has_trailers_ = false;
  bool expanded_ = false;  // the request's body was compressed
  Waiting waiting_;
  EndpointId burst_home_ = kNoEndpoint;  // endpoint from place_burst()
  Progress progress_;
};

}  // namespace octavo::fleet
