#include "fleet/pick/processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/clock.h"
#include "ext_proc.pb.h"
#include "fleet/pick/choice_answer.h"
#include "fleet/pick/compressed_body.h"
#include "fleet/pick/gateway_metadata.h"
#include "fleet/pick/grpc_body.h"
#include "fleet/scan/request_scan.h"
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

using ext_proc::CommonResponse;
using ext_proc::HeaderMap;
using ext_proc::HeaderValue;
using ext_proc::ProcessingRequest;
using ext_proc::ProcessingResponse;

constexpr std::string_view kServedHeader = "x-conformance-test-served-endpoint";
constexpr std::string_view kDroppedReason = "x-llm-d-request-dropped-reason";

bool is_parsed(openai::Protocol protocol, const Parsers& parsers) {
  switch (protocol) {
    case openai::Protocol::openai:
    case openai::Protocol::cohere:
    case openai::Protocol::ollama:
      return parsers.openai;
    case openai::Protocol::anthropic:
      return parsers.anthropic;
    case openai::Protocol::vllm:
      return parsers.vllm;
    case openai::Protocol::sglang:
      return parsers.sglang;
  }
  return false;
}

std::string_view code_name(int status) {
  switch (status) {
    case 400:
      return "BadRequest";
    case 413:
      return "PayloadTooLarge";
    case 429:
      return "ResourceExhausted";
    case 503:
      return "ServiceUnavailable";
    default:
      return "Internal";
  }
}

std::string_view value_of(const HeaderValue& header) {
  return header.raw_value().empty() ? header.value() : header.raw_value();
}

}  // namespace

Processor::Processor(ProcessorContext& context, std::string_view traceparent)
    : context_(context),
      arrived_us_(now_us()),
      trace_(context.options.tracer, context.metrics.plugin_times(), traceparent),
      body_share_(context.bodies),
      answer_(context.balancer) {
  reported_.status = 0;
  context_.metrics.stream_opened();
}

Processor::~Processor() {
  response_ended();
  context_.metrics.stream_closed();
}

double Processor::seconds() const { return static_cast<double>(now_us() - arrived_us_) * 1e-6; }

Result<> Processor::process(const ProcessingRequest& message, Answers& answers) {
  if (progress_.over) return {};
  if (!progress_.decided) learn_subset(message);
  if (message.has_request_headers()) return on_request_headers(message, answers);
  if (message.has_request_body()) return on_request_body(message, answers);
  if (message.has_request_trailers()) {
    on_request_trailers(answers);
  } else if (message.has_response_headers()) {
    on_response_headers(message, answers);
  } else if (message.has_response_body()) {
    on_response_body(message.response_body(), answers);
  } else if (message.has_response_trailers()) {
    answers.emplace_back().mutable_response_trailers();
    report_attributes(context_.options.attributes, answer_.usage(), answers.back());
    response_ended();
  } else {
    return invalid("request", "the message has an unknown type");
  }
  return {};
}

Result<> Processor::on_request_headers(const ProcessingRequest& message, Answers& answers) {
  if (progress_.begun) return invalid("request_headers", "occurred twice in one stream");
  progress_.begun = true;
  const auto mode = [](int sent) {
    if (sent == ext_proc::NONE) return BodyMode::none;
    if (sent == ext_proc::FULL_DUPLEX_STREAMED) return BodyMode::full_duplex;
    return sent == ext_proc::BUFFERED ? BodyMode::buffered : BodyMode::other;
  };
  if (message.has_protocol_config()) {
    request_mode_ = mode(message.protocol_config().request_body_mode());
    response_mode_ = mode(message.protocol_config().response_body_mode());
  }
  if (request_mode_ == BodyMode::other)
    return invalid("request_body_mode", "must be FULL_DUPLEX_STREAMED, BUFFERED or NONE");
  for (const HeaderValue& header : message.request_headers().headers().headers()) {
    if (header.key() == ":path") {
      const std::string_view target = value_of(header);
      request_.path = target.substr(0, target.find('?'));
    } else if (header.key() == ":method") {
      request_.method = value_of(header);
    } else if (!header.key().starts_with(':')) {
      request_.headers.add(header.key(), std::string(value_of(header)));
    }
  }
  trace_.begin(request_);
  if (message.request_headers().end_of_stream() || request_mode_ == BodyMode::none) {
    pick_any(answers);
  } else if (request_mode_ == BodyMode::buffered) {
    answers.emplace_back().mutable_request_headers();  // asks the gateway to send the body
  }
  return {};
}

Result<> Processor::on_request_body(const ProcessingRequest& message, Answers& answers) {
  const auto& piece = message.request_body();
  // Some gateways send the last piece of a streamed body twice. The second copy gets no response.
  if (progress_.begun && progress_.decided && request_mode_ == BodyMode::full_duplex) return {};
  if (!progress_.begun || progress_.decided)
    return invalid("request_body", "must follow request_headers and precede the answer to the request");
  const std::uint64_t bytes = request_.body.size() + piece.body().size();
  if (bytes > context_.options.body_bytes_max) {
    refuse({413, fmt::format("a request body may have at most {} bytes (--max-payload-size)",
                             context_.options.body_bytes_max)},
           answers);
  } else if (!body_share_.grow_to(bytes)) {
    refuse({503, "the picker holds too many bytes of request bodies: retry later"}, answers);
  } else {
    request_.body += piece.body();
    if (piece.end_of_stream() || request_mode_ == BodyMode::buffered) decide(false, answers);
  }
  return {};
}

void Processor::on_request_trailers(Answers& answers) {
  if (progress_.begun && !progress_.decided) return decide(true, answers);  // also responds to the trailers
  if (!progress_.over) answers.emplace_back().mutable_request_trailers();
}

// Reads the endpoints that the gateway allows. If the gateway knows only one port of each pod, that port
// allows all ranks of the pod.
void Processor::learn_subset(const ProcessingRequest& message) {
  Subset allowed = context_.options.subset_filter ? read_subset(message) : std::nullopt;
  if (!allowed) return;
  subset_ = std::move(allowed);
  const std::string primary = fmt::format(":{}", context_.options.primary_port);
  for (std::string& address : *subset_)
    if (context_.options.primary_port > 0 && address.ends_with(primary)) address = ip_of(address);
}

void Processor::decide(bool has_trailers, Answers& answers) {
  progress_.decided = true;
  has_trailers_ = has_trailers;
  const auto expanded = expand_body(request_, body_share_, context_.options.body_bytes_max);
  if (!expanded) return refuse(expanded.error(), answers);
  expanded_ = *expanded;
  route_ = scan_request(request_, context_.balancer.headers());
  estimate_media(route_, context_.options.media_tokens);
  reported_.model = route_.model;
  reported_.target_model = route_.model;
  reported_.request_bytes = request_.body.size();
  reported_.counted = true;
  context_.metrics.began(reported_.model);
  reported_.ttft_slo_seconds = slo_seconds("x-llm-d-slo-ttft-ms", "x-slo-ttft-ms").value_or(0);
  reported_.tpot_slo_seconds = slo_seconds("x-llm-d-slo-tpot-ms", "x-slo-tpot-ms").value_or(0);
  const openai::Route* known = openai::find_route(request_.path);
  const Parsers& parsers = context_.options.parsers;
  const bool parsed = known && is_parsed(known->protocol, parsers);
  if (parsers.vllm_grpc && is_vllm_grpc(request_.path)) {
    if (const auto read = read_vllm_grpc(request_.body, route_); !read)
      return refuse({400, read.error().message}, answers);
    answer_.grpc(request_.path, route_.stream);
  } else if (parsed && known->model == openai::ModelField::body) {
    if (!route_.body.error.empty())
      return refuse({400, "error unmarshaling request bodyMap: " + route_.body.error}, answers);
    if (route_.model.empty()) return refuse({400, "model not found in request body"}, answers);
    rewrite_model();
  } else if (!parsers.passthrough && !(parsed && known->protocol == openai::Protocol::sglang)) {
    return refuse({400, "no parser takes the path " + request_.path}, answers);
  }
  if (sheds())
    return refuse({429, "system saturated, sheddable request dropped", "rejected-saturated"}, answers);
  if (context_.renderer && !route_.tokens_are_exact && route_.body.error.empty() && known && known->renders)
    waiting_.reason = Wait::tokens;
  else
    wait_for_turn(answers);
}

void Processor::wait(std::function<void()> resume) {
  switch (waiting_.reason) {
    case Wait::tokens:
      return render(std::move(resume));
    case Wait::turn:
      return hold(std::move(resume));
    case Wait::burst:
      return context_.bursts->join(route_, subset_, [this, resume = std::move(resume)](EndpointId home) {
        burst_home_ = home;
        resume();
      });
    case Wait::nothing:
      break;
  }
}

void Processor::go_on(Answers& answers) {
  switch (std::exchange(waiting_.reason, Wait::nothing)) {
    case Wait::tokens:
      return wait_for_turn(answers);
    case Wait::turn:
      return take_turn(answers);
    case Wait::burst:
      return pick(answers);
    case Wait::nothing:
      break;
  }
}

void Processor::render(std::function<void()> resume) {
  context_.renderer->render(request_.path, request_.body, [this, resume = std::move(resume)](auto tokens) {
    context_.metrics.rendered(tokens.has_value());
    route_.tokens_are_exact = tokens.has_value();
    if (tokens) route_.tokens = *std::move(tokens);
    resume();
  });
}

void Processor::wait_for_turn(Answers& answers) {
  if (context_.gate)
    waiting_.reason = Wait::turn;
  else
    wait_for_burst(answers);
}

void Processor::wait_for_burst(Answers& answers) {
  if (context_.bursts)
    waiting_.reason = Wait::burst;
  else
    pick(answers);
}

void Processor::pick(Answers& answers) {
  const std::int64_t begun = now_us();
  Attempt attempt{.target_model = reported_.target_model,
                  .prompt_tokens = static_cast<std::int64_t>(route_.tokens.size())};
  auto choice = context_.balancer.choose(
      std::exchange(route_, {}),
      {.subset = &subset_, .priority = flow_item().priority, .burst_home = burst_home_, .timer = &trace_});
  attempt.seconds = static_cast<double>(now_us() - begun) * 1e-6;
  if (choice) {
    attempt.endpoint = choice->endpoint->name;
    attempt.known_tokens = attempt.prompt_tokens - choice->new_tokens;
  }
  context_.metrics.decided(attempt);
  if (!choice) return refuse(choice.error(), answers);
  add_choice(*std::move(choice), answers);
  if (request_mode_ == BodyMode::full_duplex) add_request_body(request_.body, has_trailers_, answers);
  request_ = {};
  body_share_ = http::BodyShare(context_.bodies);
  if (has_trailers_) answers.emplace_back().mutable_request_trailers();
}

std::optional<std::string_view> Processor::header(std::string_view name, std::string_view old_name) const {
  const auto found = request_.headers.find(name);
  return found ? found : request_.headers.find(old_name);
}

// Rewrites the model's name. A request header has priority over the cluster's rules.
void Processor::rewrite_model() {
  std::optional<std::string> target;
  if (const auto requested = header("x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite"))
    target = *requested;
  else
    target = context_.rules.load()->rewritten(route_.model, Draws(context_.balancer.draw()).unit());
  if (!target || target->empty() || *target == route_.model) return;
  request_.body = with_model(request_.body, *target);
  restorer_ = ModelRestorer(*target, route_.model);
  reported_.target_model = *target;
  route_.model = *std::move(target);
}

// Returns whether to refuse the request. Without flow control, a saturated pool refuses requests with
// priorities below 0.
bool Processor::sheds() const {
  const auto view = context_.balancer.view();
  return !context_.gate && !view->members.empty() && flow_item().priority < 0 &&
         context_.balancer.saturation(context_.options.shedding) >= 1;
}

FlowItem Processor::flow_item() const {
  FlowItem item{.bytes = request_.body.size(), .arrived_us = arrived_us_};
  const auto objective = header("x-llm-d-inference-objective", "x-gateway-inference-objective");
  const auto rules = context_.rules.load();
  const auto priority = rules->objectives.find(objective.value_or(""));
  if (priority != rules->objectives.end()) item.priority = priority->second;
  const auto fairness = header("x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id");
  if (fairness && !fairness->empty())
    item.fairness_id = *fairness;
  else if (const std::string_view agent = context_.balancer.agent(route_); !agent.empty())
    item.fairness_id = agent;
  if (const auto slo = slo_seconds("x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"))
    item.ttft_slo_us = static_cast<std::int64_t>(*slo * 1e6);
  return item;
}

// Returns the seconds in a header that contains whole milliseconds. Returns nullopt if the header is
// missing, is invalid, or exceeds a day.
std::optional<double> Processor::slo_seconds(std::string_view name, std::string_view old_name) const {
  const std::string_view text = header(name, old_name).value_or("");
  constexpr std::int64_t kDayMs = 86'400'000;
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc{} || end != text.data() + text.size() || ms < 0 || ms > kDayMs) return std::nullopt;
  return static_cast<double>(ms) * 1e-3;
}

void Processor::hold(std::function<void()> resume) {
  FlowItem item = flow_item();
  waiting_.fairness_id = item.fairness_id;
  waiting_.priority = item.priority;
  item.id = context_.gate->new_id();
  waiting_.held = item.id;
  context_.gate->enqueue(std::move(item), [this, resume = std::move(resume)](FlowOutcome outcome) {
    waiting_.outcome = outcome;
    resume();
  });
  if (progress_.cancelled)
    context_.gate->cancel(waiting_.held);  // cancel() may have run before waiting_.held was set
}

void Processor::cancel() {
  progress_.cancelled = true;
  if (const std::uint64_t held = waiting_.held) context_.gate->cancel(held);
}

bool Processor::begins() const {
  return context_.gate && context_.gate->evicts() && progress_.begun && !progress_.evictable &&
         answer_.picked() && waiting_.held > 0;
}

void Processor::evictable(std::function<void()> evict) {
  progress_.evictable = true;
  context_.gate->runs(waiting_.held, waiting_.priority, std::move(evict));
}

void Processor::evict(Answers& answers) {
  if (!progress_.begun || progress_.over) return;
  end_with(429, "request evicted by flow control", "evicted", answers);
  response_ended();
}

void Processor::take_turn(Answers& answers) {
  switch (waiting_.outcome) {
    case FlowOutcome::dispatched:
      return wait_for_burst(answers);
    case FlowOutcome::rejected_capacity:
      return refuse({429, "too many requests wait", "rejected-saturated"}, answers);
    case FlowOutcome::rejected_no_endpoints:
      return refuse({503, "too many requests wait for endpoints", "rejected-no-endpoints"}, answers);
    case FlowOutcome::evicted_ttl:
      return refuse({429, "request waited for too long", "rejected-ttl-expired"}, answers);
    case FlowOutcome::evicted_no_endpoints:
      return refuse({503, "request waited for too long, there are no endpoints", "rejected-no-endpoints"},
                    answers);
    case FlowOutcome::evicted_context_cancelled:
      return refuse({503, "request cancelled while it waited", "rejected-context-cancelled"}, answers);
    case FlowOutcome::evicted_other:
      return refuse({503, "the endpoint picker is shutting down", "rejected-shutting-down"}, answers);
  }
}

// Picks an endpoint for a request whose body is not read.
void Processor::pick_any(Answers& answers) {
  progress_.decided = true;
  auto choice = context_.balancer.choose(scan_request(request_, context_.balancer.headers()),
                                         {.subset = &subset_, .bodiless = true, .timer = &trace_});
  if (!choice) return refuse(choice.error(), answers);
  add_choice(*std::move(choice), answers);
}

void Processor::add_choice(Choice choice, Answers& answers) {
  answer_.sent(std::move(choice));
  reported_.split = split_of(answer_.choice());
  const std::string request_id = request_.headers.find("x-request-id")
                                     ? ""
                                     : random_uuid(context_.balancer.draw(), context_.balancer.draw());
  write_choice({.choice = answer_.choice(),
                .request = request_,
                .primary_port = context_.options.primary_port,
                .emit_scores = context_.options.emit_scores,
                .buffered = request_mode_ == BodyMode::buffered && !request_.body.empty(),
                // Envoy removes Content-Length if it streams the body to the picker.
                .sets_length = request_mode_ == BodyMode::full_duplex && !request_.body.empty(),
                .changes_body = restorer_.active() || expanded_,
                .expands_body = expanded_,
                .traceparent = trace_.traceparent(),
                .request_id = request_id},
               answers.emplace_back());
  trace_.end(reported_.target_model, answer_.choice());
}

void Processor::refuse(const Refusal& refusal, Answers& answers) {
  trace_.end(reported_.target_model, refusal);
  end_with(refusal.status,
           fmt::format("inference error: {} - {}", code_name(refusal.status), refusal.message),
           refusal.dropped_reason, answers);
}

void Processor::end_with(int status, std::string body, std::string_view dropped_reason, Answers& answers) {
  progress_.over = true;
  reported_.status = status;
  auto& immediate = *answers.emplace_back().mutable_immediate_response();
  immediate.mutable_status()->set_code(status);
  immediate.set_body(std::move(body));
  if (!dropped_reason.empty()) set_header(*immediate.mutable_headers(), kDroppedReason, dropped_reason);
}

void Processor::on_response_headers(const ProcessingRequest& message, Answers& answers) {
  const ext_proc::HttpHeaders& headers = message.response_headers();
  for (const HeaderValue& header : headers.headers().headers()) {
    const std::string_view value = value_of(header);
    if (header.key() == ":status")
      std::from_chars(value.data(), value.data() + value.size(), reported_.status);
    if (header.key() == "content-type") answer_.content_type(value);
  }
  CommonResponse& common = *answers.emplace_back().mutable_response_headers()->mutable_response();
  if (context_.options.reports_served)
    set_header(*common.mutable_header_mutation(), kServedHeader,
               read_served(message).value_or("fail: missing destination endpoint served metadata"));
  for (const auto& [name, value] : answer_.choice().answer_headers)
    set_header(*common.mutable_header_mutation(), name, value);
  if (restorer_.active()) common.mutable_header_mutation()->add_remove_headers("content-length");
  if (headers.end_of_stream()) response_ended();
}

void Processor::on_response_body(const ext_proc::HttpBody& piece, Answers& answers) {
  answer_.piece(piece.body());
  auto& answer = *answers.emplace_back().mutable_response_body();
  const bool restored = restorer_.active();
  std::string body = restored ? restorer_.push(piece.body(), piece.end_of_stream()) : piece.body();
  if (response_mode_ == BodyMode::full_duplex) {
    auto& streamed = *answer.mutable_response()->mutable_body_mutation()->mutable_streamed_response();
    streamed.set_body(std::move(body));
    streamed.set_end_of_stream(piece.end_of_stream());
  } else if (restored) {
    answer.mutable_response()->mutable_body_mutation()->set_body(std::move(body));
  }
  if (!piece.end_of_stream()) return;
  report_attributes(context_.options.attributes, answer_.usage(), answers.back());
  response_ended();
}

void Processor::response_ended() {
  answer_.ended(arrived_us_, reported_);
  if (progress_.evictable) context_.gate->stopped(waiting_.held);
  if (!std::exchange(progress_.begun, false)) return;
  reported_.seconds = seconds();
  if (context_.gate && reported_.input_tokens >= 0)
    context_.gate->ended(waiting_.fairness_id, reported_.input_tokens,
                         std::max<std::int64_t>(reported_.output_tokens, 0));
  context_.metrics.ended(reported_);
}

}  // namespace octavo::fleet
