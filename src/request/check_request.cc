#include "request/check_request.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>

namespace octavo {
namespace {

Result<> check_ids(std::string_view field, std::span<const TokenId> ids, int vocab_size) {
  for (const TokenId id : ids)
    if (id < 0 || id >= vocab_size)
      return invalid(field, "token id {} is out of vocabulary: must be in [0, {})", id, vocab_size);
  return {};
}

Result<> check_prompt_logprobs(const Request& request) {
  const LogprobRequest& requested = request.sampling.logprobs;
  constexpr std::string_view kListed = "prompt_logprob_token_ids";
  if (request.has_embeds() && requested.of_prompt())
    return invalid(requested.prompt ? "prompt_logprobs" : kListed,
                   "cannot be combined with prompt_embeds, because the prompt has no tokens");
  if (requested.prompt_token_ids.empty()) return {};
  const std::int64_t rows =
      std::max<std::int64_t>(std::ssize(request.prompt) - 1 - requested.prompt_start, 0);
  if (rows == std::ssize(requested.prompt_token_ids)) return {};
  return invalid(kListed,
                 "has {} rows, but the prompt has {} scored rows: its {} tokens, less 1, less "
                 "prompt_logprob_start = {}",
                 requested.prompt_token_ids.size(), rows, request.prompt.size(), requested.prompt_start);
}

std::string_view what_it_does(Task task) {
  switch (task) {
    case Task::generate:
      return "generate text";
    case Task::embed:
      return "make vectors of texts";
    case Task::classify:
      return "score texts";
    case Task::token_embed:
      return "make a vector of each token";
    case Task::token_classify:
      return "score each token";
  }
  return "";
}

}  // namespace

Result<> check_request(const Request& request, const EngineInfo& engine) {
  const int first = engine.index, end = first + engine.engines;
  if (request.engine && (*request.engine < first || *request.engine >= end))
    return invalid("data_parallel_rank", "must be in [{}, {}), got {}", first, end, *request.engine);
  TRY_VOID(check_ids("prompt", request.prompt, engine.vocab_size));
  if (request.prompt.empty()) return invalid("prompt", "the prompt is empty, but needs at least 1 token");
  if (!engine.tasks.does(request.task))
    return invalid("task", "{} models cannot do this task, because they {}", engine.architecture,
                   what_it_does(engine.tasks.default_task));
  if (engine.tasks.default_task != Task::generate) {
    if (request.prompt.size() > static_cast<std::size_t>(engine.max_model_len))
      return invalid("prompt", "the text has {} tokens, but the model accepts at most {}: shorten the text",
                     request.prompt.size(), engine.max_model_len);
    return check_media(request.media, request.prompt.size(), engine);
  }
  if (request.prompt.size() >= static_cast<std::size_t>(engine.max_model_len))
    return invalid("prompt",
                   "the prompt has {} tokens, but the context of {} tokens allows at most {}: shorten the "
                   "prompt, or set a larger max_model_len",
                   request.prompt.size(), engine.max_model_len, engine.max_model_len - 1);
  TRY_VOID(check_media(request.media, request.prompt.size(), engine));
  TRY_VOID(check_prompt_logprobs(request));
  if (const auto& budget = request.thinking_budget) {
    TRY_VOID(check_ids("thinking_token_budget", std::array{budget->begin, budget->end}, engine.vocab_size));
    if (budget->tokens < 0)
      return invalid("thinking_token_budget", "must be at least 0, got {}", budget->tokens);
  }
  for (const AnswerSoFar& begun : request.answers_so_far) {
    if (begun.index < 0 || begun.index >= request.sampling.n)
      return invalid("answers_so_far", "index must be in [0, {}), got {}", request.sampling.n, begun.index);
    TRY_VOID(check_ids("answers_so_far", begun.tokens, engine.vocab_size));
  }
  return {};
}

}  // namespace octavo
