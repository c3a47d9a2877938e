#include "local/local_generation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "serve/prepare.h"

namespace octavo {

class Arrivals::Sink final : public OutputSink, public std::enable_shared_from_this<Sink> {
 public:
  Sink(std::size_t job, std::shared_ptr<Queue> queue) : job_(job), queue_(std::move(queue)) {}
  void deliver(Output&& output) noexcept override {
    {
      const std::lock_guard lock(queue_->mutex);
      queue_->arrivals.push_back({job_, std::move(output), now_us(), shared_from_this()});
    }
    queue_->came.notify_one();
  }

 private:
  std::size_t job_;
  std::shared_ptr<Queue> queue_;
};

std::shared_ptr<OutputSink> Arrivals::sink(std::size_t job) const {
  return std::make_shared<Sink>(job, queue_);
}

bool Arrivals::pop(Arrival& arrival, int wait_ms) {
  if (taken_.empty()) {
    std::unique_lock lock(queue_->mutex);
    queue_->came.wait_for(lock, std::chrono::milliseconds(wait_ms),
                          [&] { return !queue_->arrivals.empty(); });
    std::swap(queue_->arrivals, taken_);
    std::reverse(taken_.begin(), taken_.end());
  }
  if (taken_.empty()) return false;
  arrival = std::move(taken_.back());
  taken_.pop_back();
  return true;
}

LocalGeneration::LocalGeneration(Service& service, const GenerationPlan& plan)
    : service_(&service),
      unfinished_(plan.request.sampling.n),
      prompt_tokens_(plan.prompt_tokens(0)) {
  for (int i = 0; i < unfinished_; ++i)
    processors_.emplace_back(service.tokenizer, plan.request.sampling, service.options.eos_ids, plan.stops,
                             plan.prompts.front(), plan.thinking);
}

Result<LocalGeneration> LocalGeneration::start(Service& service, GenerationPlan& plan, std::size_t job,
                                               Arrivals& arrivals) {
  LocalGeneration generation(service, plan);
  generation.sink_ = arrivals.sink(job);
  TRY(generation.id_,
      service.engine.submit(make_request(plan, 0, service.options.eos_ids), generation.sink_));
  return generation;
}

openai::AnswerPart LocalGeneration::take(Output&& output) {
  openai::OutputProcessor& processor = processors_[static_cast<std::size_t>(output.index)];
  // Ignores the output: a stop string has ended the sequence, but the engine may not know it yet.
  if (processor.finished()) return {};
  cached_tokens_ = output.cached_tokens;
  if (output.error) log_error("an answer ended with an error: {}", output.error->message);
  openai::AnswerPart part = processor.take(std::move(output));
  // All sequences have ended, so the client needs no more output.
  if (processor.finished() && --unfinished_ == 0) abort();
  return part;
}

Result<GenerationPlan> plan_body(const Service& service, const boost::json::object& body,
                                 bool cut_max_tokens) {
  if (body.contains("messages")) {
    TRY(openai::ChatRequest request, openai::parse_chat_request(body, service.options.rules));
    if (cut_max_tokens) request.generation.limit_field = {};
    return prepare_chat(service, std::move(request));
  }
  TRY(openai::CompletionRequest request, openai::parse_completion_request(body, service.options.rules));
  if (request.prompts.size() != 1)
    return invalid("prompt", "must be one prompt, got {}", request.prompts.size());
  if (cut_max_tokens) request.generation.limit_field = {};
  return prepare_completion(service, std::move(request));
}

}  // namespace octavo
