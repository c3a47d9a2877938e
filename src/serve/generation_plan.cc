#include "serve/generation_plan.h"

#include <utility>

namespace octavo {

Request make_request(GenerationPlan& plan, std::size_t prompt, std::vector<TokenId> eos_ids) {
  const openai::GenerationRequest& asked = plan.request;
  Request request;
  request.name = asked.request_id;
  request.prompt = std::move(plan.prompts[prompt]);
  request.images = std::move(plan.images);
  if (!plan.sounds.empty()) request.images.push_back(std::move(plan.sounds[prompt]));
  request.sampling = asked.sampling;
  request.eos_ids = std::move(eos_ids);
  request.priority = asked.priority;
  request.identity.adapter = asked.adapter;
  request.identity.salt = asked.cache_salt;
  request.grammar = asked.output;
  if (asked.resume) request.answers_so_far = {{.index = 0, .tokens = *asked.resume}};
  request.engine = plan.engine;
  request.kv_transfer = asked.kv_transfer;
  // Thoughts that an answer begins with are free.
  if (plan.thinking && plan.thinking->open) request.grammar_after = plan.thinking->end;
  return request;
}

}  // namespace octavo
