#include <utility>

#include "app/chat_backends.h"
#include "base/clock.h"
#include "http/sse.h"
#include "local/local_generation.h"

namespace octavo {
namespace {

class LocalChat final : public ChatBackend {
 public:
  explicit LocalChat(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

  std::string name() const override { return runtime_->service->options.rules.model_names.front(); }

  // The reply has the same events as that of a server.
  Result<Turn> answer(const boost::json::object& body, const ShowPiece& show) override {
    Service& service = *runtime_->service;
    boost::json::object streamed = body;
    streamed["stream"] = true;
    TRY(GenerationPlan plan, plan_body(service, streamed));
    const std::size_t job = ++job_;
    const std::int64_t started = now_us();
    TRY(LocalGeneration generation, LocalGeneration::start(service, plan, job, arrivals_));
    Turn turn;
    http::SseReader events;
    while (!generation.finished()) {
      Arrivals::Arrival arrival;
      const bool arrived =
          // skips outputs of the last answer, which may still arrive
          arrivals_.pop(arrival, 100) && arrival.job == job;
      if (arrived && arrival.output.error) return std::unexpected(*arrival.output.error);
      bool wanted = show({Piece::Kind::text, ""});
      if (arrived) {
        const openai::AnswerPart part = generation.take(std::move(arrival.output));
        if (turn.tokens == 0) turn.first_s = static_cast<double>(now_us() - started) * 1e-6;
        turn.tokens += static_cast<int>(part.token_ids.size());
        for (const std::string& event : events.push(plan.reply->part(part, nullptr))) {
          const Result<bool> more = turn.take(event, show);
          if (!more) {
            generation.abort();
            return std::unexpected(more.error());
          }
          wanted = wanted && *more;
        }
      }
      if (!wanted) generation.abort();
    }
    turn.prompt_tokens = generation.prompt_tokens();
    turn.cached_tokens = generation.cached_tokens();
    turn.all_s = static_cast<double>(now_us() - started) * 1e-6;
    return turn;
  }

 private:
  Arrivals arrivals_;
  std::size_t job_ = 0;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace

Result<std::unique_ptr<ChatBackend>> local_chat(std::unique_ptr<Runtime> runtime) {
  if (!runtime->chat_template)
    return invalid("model", "the model has no chat template: give one with --chat-template");
  return std::make_unique<LocalChat>(std::move(runtime));
}

}  // namespace octavo
