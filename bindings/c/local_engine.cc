#include "local_engine.h"

#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <cstdlib>
#include <future>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "local/options_json.h"
#include "local/vllm_variables.h"
#include "serve/openai/kv_transfer_fields.h"

namespace octavo {
namespace {

// Returns the default sampling parameters by request field.
boost::json::object sampling_defaults(const openai::GenerationDefaults& defaults) {
  boost::json::object out = defaults.sampling;
  if (defaults.max_tokens) out["max_tokens"] = *defaults.max_tokens;
  return out;
}

// Calls begin(done) and waits until `done` is called.
template <class Begin>
Result<> wait_for(Begin&& begin) {
  std::promise<Result<>> promise;
  begin([&](Result<> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

}  // namespace

std::string details_of(const OwnedOutput& output) {
  boost::json::object details;
  if (output.part.kv_transfer)
    details["kv_transfer_params"] = openai::kv_transfer_json(*output.part.kv_transfer);
  if (output.preemptions > 0) details["num_preemptions"] = output.preemptions;
  return details.empty() ? "" : boost::json::serialize(details);
}

LocalEngine::LocalEngine(std::unique_ptr<Runtime> runtime, bool sleep_mode)
    : runtime_(std::move(runtime)), sleep_mode_(sleep_mode) {
  const EngineInfo engine = runtime_->engine->info();
  const ServeOptions& serve = runtime_->service->options;
  info_ = boost::json::serialize(
      boost::json::object{{"model", serve.rules.model_names.front()},
                          {"pooling_task", task_name(serve.pooling.task.value_or(engine.tasks.default_task))},
                          {"max_model_len", engine.max_model_len},
                          {"vocab_size", engine.vocab_size},
                          {"num_blocks", engine.num_blocks},
                          {"eos_token_ids", boost::json::value_from(serve.eos_ids)},
                          {"default_sampling_params", sampling_defaults(serve.rules.defaults)}});
}

Result<std::unique_ptr<LocalEngine>> LocalEngine::create(const boost::json::object& fields) {
  static std::once_flag logged;
  std::call_once(logged, [] { log_vllm_variables(environ); });
  TRY(RuntimeOptions options, runtime_options(fields, [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value != nullptr ? value : "");
      }));
  const bool sleep_mode = options.sleep_mode;
  // The caller is the program itself, so its templates are trusted.
  options.serve.rules.trust_chat_templates = true;
  TRY(auto runtime, start_runtime(std::move(options)));
  return std::unique_ptr<LocalEngine>(new LocalEngine(std::move(runtime), sleep_mode));
}

Result<> LocalEngine::submit(std::uint64_t request, const boost::json::object& body, bool stream) {
  Service& service = *runtime_->service;
  TRY(GenerationPlan plan, plan_body(service, body, true));
  const auto answers = static_cast<std::size_t>(plan.request.sampling.n);
  std::vector<TokenId> prompt;
  if (plan.sources.empty() || !plan.sources[0].embeds) prompt = plan.prompts.front();
  const std::lock_guard lock(mutex_);
  TRY_VOID(is_new(request));
  const auto found =
      active_.emplace(request, Active{.plan = std::move(plan), .prompt = std::move(prompt), .stream = stream})
          .first;
  Active& active = found->second;
  active.answers.resize(answers);
  auto generation = LocalGeneration::start(service, active.plan, request, arrivals_);
  if (!generation) {
    active_.erase(found);
    return std::unexpected(std::move(generation.error()));
  }
  active.generation = std::move(*generation);
  return {};
}

Result<> LocalEngine::is_new(std::uint64_t request) const {
  if (!active_.contains(request) && !reading_.contains(request)) return {};
  return invalid("request", "request: an unfinished request already has the id {}", request);
}

Result<> LocalEngine::submit_texts(std::uint64_t request, std::string_view route,
                                   const boost::json::object& body) {
  const std::optional<PoolingRoute> known = pooling_route(route);
  if (!known) return invalid("route", "must be /v1/embeddings, /pooling, /classify, /score or /rerank");
  Service& service = *runtime_->service;
  TRY(openai::PoolingRequest wanted, parse_pooling(*known, body, service.options.rules));
  TRY(PoolingPlan plan, plan_pooling(service, *known, std::move(wanted)));
  std::optional<std::vector<TokenId>> prompt;
  if (plan.texts.size() == 1) prompt = plan.texts.front().ids;
  const std::lock_guard lock(mutex_);
  TRY_VOID(is_new(request));
  TRY(LocalPooling pooling, LocalPooling::start(service, std::move(plan), request, arrivals_));
  reading_.emplace(request, Reading{.prompt = std::move(prompt), .pooling = std::move(pooling)});
  return {};
}

Result<> LocalEngine::load_adapter(const std::string& name, const std::string& path) {
  const Service& service = *runtime_->service;
  if (name.empty() ||
      std::ranges::find(service.options.rules.model_names, name) != service.options.rules.model_names.end())
    return invalid("lora_name", "must be a name other than the model's, got \"{}\"", name);
  TRY(const std::string folder, service.options.find_adapter(path));
  TRY_VOID(
      wait_for([&](EngineClient::Done done) { engine().load_adapter({name, folder}, std::move(done)); }));
  service.offer_adapter({.name = name, .path = path, .parent = {}});
  return {};
}

void LocalEngine::abort(std::uint64_t request) {
  const std::lock_guard lock(mutex_);
  if (const auto found = active_.find(request); found != active_.end()) found->second.generation->abort();
  if (const auto found = reading_.find(request); found != reading_.end()) found->second.pooling.abort();
}

void LocalEngine::take_text(Arrivals::Arrival arrival, std::vector<OwnedOutput>& out) {
  const auto found = reading_.find(arrival.job);
  if (found == reading_.end()) return;
  LocalPooling& pooling = found->second.pooling;
  const RequestTimes times = arrival.output.times;
  if (arrival.output.finished)
    runtime_->service->metrics.answer_ended(
        {.engine = arrival.output.engine,
         .reason = *arrival.output.finished,
         .prompt_tokens = found->second.prompt ? static_cast<int>(found->second.prompt->size()) : 0,
         .times = times,
         .finished_us = arrival.at_us});
  pooling.take(std::move(arrival.output));
  if (!pooling.finished()) return;
  OwnedOutput output;
  output.request = arrival.job;
  output.last = true;
  output.prompt = std::move(found->second.prompt);
  output.times = times;
  output.part.finish = pooling.reason();
  if (auto reply = pooling.reply())
    output.part.text = *std::move(reply);
  else
    output.error = std::move(reply.error().message);
  out.push_back(std::move(output));
  reading_.erase(found);
}

void LocalEngine::take(Arrivals::Arrival arrival, std::vector<OwnedOutput>& out) {
  const std::lock_guard lock(mutex_);
  const auto found = active_.find(arrival.job);
  if (found == active_.end())
    // a pooling request, or a request that a stop string has ended
    return take_text(std::move(arrival), out);
  Active& active = found->second;
  if (!active.generation->owns(arrival)) return;
  Output& output = arrival.output;
  const int index = output.index, engine = output.engine;
  Progress& answer = active.answers[static_cast<std::size_t>(index)];
  if (answer.ended) return;
  measure(active, answer, arrival);

  OwnedOutput& pending = answer.pending;
  pending.cached_tokens = output.cached_tokens;
  if (output.error) pending.error = output.error->message;
  pending.times = output.times;
  pending.preemptions = output.preemptions;
  std::ranges::move(output.prompt_logprobs, std::back_inserter(pending.prompt_logprobs));
  pending.part.append(active.generation->take(std::move(output)));
  answer.ended = pending.part.finish.has_value();
  if (answer.ended) measure_end(active, answer, engine, arrival.at_us);
  if (!answer.ended && (!active.stream || pending.part.token_ids.empty())) return;

  pending.request = arrival.job;
  pending.part.index = index;
  pending.last = active.generation->finished();
  if (!std::exchange(answer.begun, true)) pending.prompt = active.prompt;
  out.push_back(std::exchange(pending, {}));
  if (out.back().last) active_.erase(found);
}

void LocalEngine::measure(const Active& active, Progress& answer, const Arrivals::Arrival& arrival) {
  const Output& output = arrival.output;
  if (output.token_ids.empty()) return;
  const bool first = answer.last_output_us == 0;
  const std::int64_t since_us = first ? active.plan.arrived_us : answer.last_output_us;
  const double seconds = static_cast<double>(arrival.at_us - since_us) * 1e-6;
  Metrics& metrics = runtime_->service->metrics;
  first ? metrics.first_token(output.engine, seconds) : metrics.token_gap(output.engine, seconds);
  answer.last_output_us = arrival.at_us;
  answer.tokens += static_cast<int>(output.token_ids.size());
}

void LocalEngine::measure_end(const Active& active, const Progress& answer, int engine, std::int64_t at_us) {
  const OwnedOutput& last = answer.pending;
  const SamplingParams& sampling = active.plan.request.sampling;
  runtime_->service->metrics.answer_ended({.engine = engine,
                                           .reason = *last.part.finish,
                                           .prompt_tokens = active.generation->prompt_tokens(),
                                           .cached_tokens = last.cached_tokens,
                                           .generation_tokens = answer.tokens,
                                           .max_tokens = sampling.max_tokens.value_or(0),
                                           .n = sampling.n,
                                           .preemptions = last.preemptions,
                                           .times = last.times,
                                           .finished_us = at_us});
  const std::shared_ptr<Tracer>& tracer = runtime_->service->options.observe.tracer;
  if (!tracer) return;
  tracer->record(to_span({.request_id = active.plan.request.request_id,
                          .model = active.plan.request.model,
                          .max_tokens = sampling.max_tokens.value_or(0),
                          .temperature = sampling.temperature,
                          .top_p = sampling.top_p,
                          .n = sampling.n,
                          .prompt_tokens = active.generation->prompt_tokens(),
                          .generation_tokens = answer.tokens,
                          .finish_reason = name(*last.part.finish),
                          .times = last.times,
                          .arrived_us = active.plan.arrived_us,
                          .finished_us = at_us}));
}

Result<> LocalEngine::sleep(int level) {
  if (level != 1 && level != 2) return invalid("level", "must be 1 or 2, got {}", level);
  if (!sleep_mode_)
    return invalid("enable_sleep_mode", "must be true, because only an engine with this option can sleep");
  return wait_for([&](EngineClient::Done done) { engine().sleep(level, std::move(done)); });
}

Result<> LocalEngine::wake_up() {
  return wait_for([&](EngineClient::Done done) { engine().wake_up(std::move(done)); });
}

Result<> LocalEngine::pause(std::string_view mode) {
  static const std::map<std::string_view, PauseMode> kModes = {
      {"abort", PauseMode::abort}, {"wait", PauseMode::wait}, {"keep", PauseMode::keep}};
  const auto known = kModes.find(mode);
  if (known == kModes.end()) return invalid("mode", "must be abort, wait or keep, got {}", mode);
  return wait_for([&](EngineClient::Done done) { engine().pause(known->second, std::move(done)); });
}

std::string LocalEngine::metrics() const {
  return runtime_->service->metrics.text(engine().stats(), engine().info());
}

std::vector<OwnedOutput> LocalEngine::wait(int timeout_ms) {
  const std::lock_guard lock(waiting_);
  const std::int64_t deadline_us = now_us() + std::int64_t{1000} * timeout_ms;
  std::vector<OwnedOutput> out;
  Arrivals::Arrival arrival;
  while (out.empty()) {
    const std::int64_t left_us = std::max<std::int64_t>(0, deadline_us - now_us());
    if (!arrivals_.pop(arrival, static_cast<int>((left_us + 999) / 1000))) break;
    do take(std::move(arrival), out);
    while (arrivals_.pop(arrival, 0));
  }
  return out;
}

}  // namespace octavo
