// One HTTP request of the gateway, message by message, and the picker's answers: the state machine of
// ext_proc without gRPC.
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

// Whose bodies are read; what none of them claims goes to any endpoint, or is refused.
struct Parsers {
  bool openai = true;
  bool anthropic = true;
  bool vllm = true;
  bool sglang = false;
  bool passthrough = true;
};

struct ProcessorOptions {
  Parsers parsers = {};
  std::uint64_t body_bytes_max = 64 << 20;              // of one request: 413
  std::uint64_t bodies_bytes_max = 512 << 20;           // of all whose bodies are being gathered: 503
  bool subset_filter = true;                            // the gateway's subset of endpoints counts
  bool emit_scores = false;                             // tell the gateway the scores of the endpoints picked
  RequestRules rules = {};                              // to begin with
  std::optional<FlowGateOptions> flow = {};             // nullopt: requests do not wait
  SaturationDetector shedding =
      UtilizationDetector{};      // without `flow`: refuses priorities below 0 when saturated
  int primary_port = 0;           // where the gateway sends all requests to; 0: as picked
  MediaTokens media_tokens = {};  // where a prompt's tokens are estimated
  std::vector<RequestAttribute> attributes = {};  // reported with each answer
  bool tells_served = false;  // answers name the endpoint that served them, for conformance tests of gateways
};

// The parts of a picker that all streams use.
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
  const std::unique_ptr<FlowGate> gate;                    // null: requests do not wait
  std::unique_ptr<PromptRenderer> renderer = {};           // null: tokens are estimated
  std::unique_ptr<BurstGate> bursts = {};                  // null: each request is placed by itself
};

class Processor {
 public:
  explicit Processor(ProcessorContext& context);
  ~Processor();  // the request has ended, whatever has been heard of it
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  // Appends the answers to `message`, in the order in which the gateway wants them. An error ends the stream:
  // the gateway does not speak the protocol as agreed.
  Result<> process(const ext_proc::ProcessingRequest& message,
                   std::vector<ext_proc::ProcessingResponse>& answers);

  // The request must wait: wait(), and process() nothing before `resume` is called, on any thread: then
  // go_on() appends the answers, or it waits() once more. cancel() may be called from anywhere at any time.
  bool waits() const { return waits_for_ != Wait::nothing; }
  void wait(std::function<void()> resume);
  void go_on(std::vector<ext_proc::ProcessingResponse>& answers);
  void cancel();

  // Whether it runs from now on, and may be told to end: then evictable() is due, once. `evict` is called on
  // another thread; evict() then appends the answer that ends the request, unless it has ended.
  bool begins() const;
  void evictable(std::function<void()> evict);
  void evict(std::vector<ext_proc::ProcessingResponse>& answers);

  // The last answer refuses the request: nothing follows it.
  bool over() const { return over_; }

 private:
  // How the gateway sends a body and takes the answer.
  enum class BodyMode : std::uint8_t { none, full_duplex, buffered, other };
  // A request waits in this order: for its prompt's tokens, for room (flow control), for others of the same
  // moment.
  enum class Wait : std::uint8_t { nothing, tokens, turn, burst };
  using Answers = std::vector<ext_proc::ProcessingResponse>;

  Result<> on_request_headers(const ext_proc::ProcessingRequest& message, Answers& answers);
  Result<> on_request_body(const ext_proc::ProcessingRequest& message, Answers& answers);
  void on_request_trailers(Answers& answers);
  void on_response_headers(const ext_proc::ProcessingRequest& message, Answers& answers);
  void on_response_body(const ext_proc::HttpBody& piece, Answers& answers);
  void response_ended();

  // Reads the request, picks, and answers headers and body with the choice, or refuses.
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
  // The message that says where the request goes: to its headers, or to its buffered body.
  void add_choice(Choice choice, Answers& answers);
  void refuse(const Refusal& refusal, Answers& answers);
  void end_with(int status, std::string body, std::string_view dropped_reason, Answers& answers);
  void learn_subset(const ext_proc::ProcessingRequest& message);
  double seconds() const;

  ProcessorContext& context_;
  const std::int64_t arrived_us_;
  BodyMode request_mode_ = BodyMode::full_duplex;
  BodyMode response_mode_ = BodyMode::full_duplex;
  http::Request request_;  // method, path, headers, and the body as it is gathered
  http::BodyShare body_share_;
  PickedAnswer answer_;
  PickedRequest told_;
  RouteRequest route_;            // until it is picked for
  std::string fairness_id_ = {};  // as it waited
  Subset subset_;
  ModelRestorer restorer_;
  bool has_trailers_ = false;
  Wait waits_for_ = Wait::nothing;
  FlowOutcome outcome_ = FlowOutcome::dispatched;  // how the wait in the queue ended
  EndpointId burst_home_ = kNoEndpoint;            // endpoint chosen for the burst of equal prompts
  std::atomic<std::uint64_t> held_ = 0;            // id at the flow gate; 0 if the request never entered it
  int priority_ = 0;                               // priority at the flow gate
  bool evictable_ = false;
  std::atomic<bool> cancelled_ = false;
  bool begun_ = false;
  bool decided_ = false;
  bool over_ = false;
};

}  // namespace octavo::fleet
