#include "local_engine.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "local/options_json.h"

namespace octavo {
namespace {

// What generation_config.json says, by the names of request fields.
boost::json::object sampling_defaults(const openai::GenerationDefaults& defaults) {
  boost::json::object out;
  const auto add = [&](std::string_view name, const auto& value) {
    if (value) out[name] = *value;
  };
  add("temperature", defaults.temperature);
  add("top_p", defaults.top_p);
  add("top_k", defaults.top_k);
  add("min_p", defaults.min_p);
  add("repetition_penalty", defaults.repetition_penalty);
  add("max_tokens", defaults.max_tokens);
  return out;
}

}  // namespace

LocalEngine::LocalEngine(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {
  const EngineInfo engine = runtime_->engine->info();
  info_ = boost::json::serialize(
      boost::json::object{{"model", runtime_->service->options.rules.model_names.front()},
                          {"max_model_len", engine.max_model_len},
                          {"vocab_size", engine.vocab_size},
                          {"num_blocks", engine.num_blocks},
                          {"default_sampling_params",
                           sampling_defaults(runtime_->service->options.rules.defaults)}});
}

Result<std::unique_ptr<LocalEngine>> LocalEngine::create(const boost::json::object& fields) {
  TRY(RuntimeOptions options, runtime_options(fields, [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value != nullptr ? value : "");
      }));
  TRY(auto runtime, start_runtime(std::move(options)));
  return std::unique_ptr<LocalEngine>(new LocalEngine(std::move(runtime)));
}

Result<> LocalEngine::submit(std::uint64_t request, const boost::json::object& body, bool stream) {
  Service& service = *runtime_->service;
  TRY(GenerationPlan plan, plan_body(service, body, true));
  const auto answers = static_cast<std::size_t>(plan.request.sampling.n);
  std::vector<TokenId> prompt = plan.prompts.front();
  const std::lock_guard lock(mutex_);
  const auto [place, added] = active_.emplace(request, Active{.plan = std::move(plan), .prompt = std::move(prompt), .stream = stream});
  if (!added) return invalid("request", "there is an unfinished request {} already", request);
  Active& active = place->second;
  active.answers.resize(answers);
  auto generation = LocalGeneration::start(service, active.plan, request, arrivals_);
  if (!generation) {
    active_.erase(place);
    return std::unexpected(std::move(generation.error()));
  }
  active.generation = std::move(*generation);
  return {};
}

void LocalEngine::abort(std::uint64_t request) {
  const std::lock_guard lock(mutex_);
  if (const auto found = active_.find(request); found != active_.end()) found->second.generation->abort();
}

void LocalEngine::take(Arrivals::Arrival arrival, std::vector<OwnedOutput>& out) {
  const std::lock_guard lock(mutex_);
  const auto found = active_.find(arrival.job);
  if (found == active_.end()) return;  // ended by a stop string before the engine knew
  Active& active = found->second;
  Output& output = arrival.output;
  const int index = output.index;
  Progress& answer = active.answers[static_cast<std::size_t>(index)];
  if (answer.ended) return;

  OwnedOutput& pending = answer.pending;
  pending.cached_tokens = output.cached_tokens;
  if (output.error) pending.error = output.error->message;
  pending.times = output.times;
  std::ranges::move(output.prompt_logprobs, std::back_inserter(pending.prompt_logprobs));
  pending.part.append(active.generation->take(std::move(output)));
  answer.ended = pending.part.finish.has_value();
  if (!answer.ended && (!active.stream || pending.part.token_ids.empty())) return;

  pending.request = arrival.job;
  pending.part.index = index;
  pending.last = active.generation->finished();
  if (!std::exchange(answer.begun, true)) pending.prompt = active.prompt;
  out.push_back(std::exchange(pending, {}));
  if (out.back().last) active_.erase(found);
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
