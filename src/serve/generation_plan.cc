#include "serve/generation_plan.h"

#include <span>
#include <utility>

namespace octavo {
namespace {

// Returns the number of reasoning tokens at the end of the prompt, or nullopt if the prompt does not end
// within reasoning.
std::optional<int> thoughts_in(std::span<const TokenId> prompt, const ThinkingBudget& budget) {
  for (std::size_t i = prompt.size(); i-- > 0;) {
    if (prompt[i] == budget.end) return std::nullopt;
    if (prompt[i] == budget.begin) return static_cast<int>(prompt.size() - i) - 1;
  }
  return std::nullopt;
}

}  // namespace

Request make_request(GenerationPlan& plan, std::size_t prompt, std::vector<TokenId> eos_ids) {
  const openai::GenerationRequest& requested = plan.request;
  Request request;
  request.name = requested.request_id;
  request.prompt = std::move(plan.prompts[prompt]);
  request.media = std::move(plan.images);
  if (!plan.sources.empty()) request.media.push_back(std::move(plan.sources[prompt]));
  request.sampling = requested.sampling;
  request.eos_ids = std::move(eos_ids);
  request.priority = requested.priority;
  request.identity.adapter = requested.adapter;
  request.identity.salt = requested.cache_salt;
  request.grammar = requested.output;
  if (requested.stream.resume) request.answers_so_far = {{.index = 0, .tokens = *requested.stream.resume}};
  request.engine = plan.engine;
  request.report_progress = requested.stream.enabled && requested.stream.include_progress;
  request.kv_transfer = requested.kv_transfer;
  request.session = requested.session;
  // If the answer begins with reasoning, the grammar applies only after the reasoning.
  if (plan.thinking && plan.thinking->open && !plan.thinking->text)
    request.grammar_after = plan.thinking->end;
  if (plan.thinking_budget) {
    request.thinking_budget = plan.thinking_budget;
    request.thinking_budget->spent = thoughts_in(request.prompt, *plan.thinking_budget);
    if (!request.thinking_budget->spent && plan.thinking && plan.thinking->open)
      request.thinking_budget->spent = 0;
  }
  return request;
}

}  // namespace octavo
