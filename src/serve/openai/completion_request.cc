#include "serve/openai/completion_request.h"

#include <boost/json/array.hpp>
#include <limits>

#include "serve/openai/prompt_embeds.h"
#include "serve/openai/prompt_scores.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

Result<std::vector<TokenId>> read_tokens(const json::array& items, std::string_view name) {
  std::vector<TokenId> ids;
  ids.reserve(items.size());
  for (const json::value& item : items) {
    constexpr std::int64_t kMost = std::numeric_limits<TokenId>::max();
    TRY(const std::int64_t id, integer_in(item, name, -kMost, kMost));
    if (id < 0) return invalid(name, "token id {} is out of vocabulary: must be at least 0", id);
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

Result<> read_max_tokens(Fields& fields, const RequestRules& rules, CompletionRequest& request) {
  std::optional<int> given;
  TRY_VOID(fields.integer("max_tokens", given));
  GenerationRequest& out = request.generation;
  if (given) out.limit_field = "max_tokens";
  request.prompt_only = request.echo && given == 0;
  if (request.prompt_only) given = 1;
  if (given) out.sampling.max_tokens = given;
  if (!given && rules.defaults.max_tokens) out.sampling.max_tokens = rules.defaults.max_tokens;
  return {};
}

// Reads the suffix. "" counts as missing, because clients send "" if they have none.
Result<> read_suffix(Fields& fields, CompletionRequest& request) {
  std::string suffix;
  TRY_VOID(fields.text("suffix", suffix));
  if (suffix.empty()) return {};
  if (request.echo) return invalid("suffix", "cannot be combined with echo");
  if (request.generation.sampling.truncate_prompt_tokens)
    return invalid("suffix", "cannot be combined with truncate_prompt_tokens");
  request.suffix = std::move(suffix);
  return {};
}

// Reads one embeddings file or a list of files.
Result<std::vector<MediaPart>> read_embeds(Fields& fields, const RequestRules& rules) {
  constexpr std::string_view kName = "prompt_embeds";
  const json::value* given = fields.any(kName);
  std::vector<MediaPart> parts;
  if (!given) return parts;
  const json::value one(given->is_string() ? json::array{*given} : json::array{});
  if (!given->is_array() && !given->is_string())
    return invalid(kName, "must be a base64 string, or a list of base64 strings");
  const json::array& files = given->is_array() ? given->get_array() : one.get_array();
  if (files.size() > static_cast<std::size_t>(rules.prompts_max))
    return invalid(kName, "must have at most {} prompts, got {}", rules.prompts_max, files.size());
  for (const json::value& file : files) {
    if (!file.is_string()) return invalid(kName, "must be a base64 string, or a list of base64 strings");
    TRY(parts.emplace_back(), read_prompt_embeds(file.get_string(), rules));
  }
  return parts;
}

// Also true for "" and [], which clients send beside prompt_embeds.
bool lacks_prompt(Fields& fields) {
  const json::value* prompt = fields.any("prompt");
  return !prompt || (prompt->is_string() && prompt->get_string().empty()) ||
         (prompt->is_array() && prompt->get_array().empty());
}

// Reads the texts or token ids, or adds a prompt of placeholder ids for each embedding. As in vLLM, the
// prompt
// "" is invalid, even if the tokenizer adds a token at the beginning. With a suffix, "" is valid: the model
// fills in the beginning of a file.
Result<> read_any_prompts(Fields& fields, const RequestRules& rules, CompletionRequest& request) {
  TRY(request.embeds, read_embeds(fields, rules));
  const bool none = lacks_prompt(fields);
  if (request.embeds.empty()) {
    if (none && !request.suffix)
      return invalid("prompt", "Either prompt or prompt_embeds must be provided and non-empty.");
    TRY(request.prompts, read_prompts(fields, "prompt", rules.prompts_max));
    return {};
  }
  if (!none) return invalid("prompt", "cannot be combined with prompt_embeds: send them in two requests");
  for (const MediaPart& part : request.embeds)
    request.prompts.emplace_back(std::vector<TokenId>(static_cast<std::size_t>(part.tokens)));
  return {};
}

Result<> check_embeds_alone(const CompletionRequest& request) {
  const SamplingParams& p = request.generation.sampling;
  if (request.embeds.empty()) return {};
  const auto refuse = [](std::string_view field) {
    return invalid(
        field, "cannot be combined with prompt_embeds, because such a prompt has neither text nor token ids");
  };
  if (request.echo) return refuse("echo");
  if (request.suffix) return refuse("suffix");
  if (p.truncate_prompt_tokens) return refuse("truncate_prompt_tokens");
  if (p.logprobs.prompt) return refuse("prompt_logprobs");
  if (p.logprobs.of_prompt()) return refuse("prompt_logprob_token_ids");
  if (request.generation.beam.enabled) return refuse("use_beam_search");
  return {};
}

// Reads the number of log-probabilities. As in vLLM, clients may send a boolean as in chats; true means 1.
Result<> read_logprob_count(Fields& fields, LogprobRequest& out) {
  const json::value* given = fields.any("logprobs");
  if (!given || !given->is_bool()) return fields.integer("logprobs", out.output);
  if (given->get_bool()) out.output = 1;
  return {};
}

Result<> refuse_other(Fields& f, int n) {
  TRY_VOID(f.refuse("mm_processor_kwargs", "needs images, which only chats can contain"));
  std::optional<int> best_of;
  TRY_VOID(f.integer("best_of", best_of));
  if (best_of && *best_of != n) return invalid("best_of", "must be equal to n");
  return {};
}

}  // namespace

Result<std::vector<TextOrTokens>> read_prompts(Fields& fields, std::string_view name, int most) {
  const json::value* prompt = fields.any(name);
  if (!prompt) return invalid(name, "is missing");
  std::vector<TextOrTokens> prompts;
  if (prompt->is_string()) {
    prompts.emplace_back(std::string(prompt->get_string()));
    return prompts;
  }
  if (!prompt->is_array()) return invalid(name, "must be a string, a list of strings, or token ids");
  const json::array& items = prompt->get_array();
  if (items.empty()) return invalid(name, "must not be empty");
  if (items.front().is_number()) {
    TRY(prompts.emplace_back(), read_tokens(items, name));
    return prompts;
  }
  if (items.size() > static_cast<std::size_t>(most))
    return invalid(name, "must have at most {} prompts, got {}", most, items.size());
  for (const json::value& item : items) {
    if (item.is_string() && items.front().is_string()) {
      prompts.emplace_back(std::string(item.get_string()));
    } else if (item.is_array() && items.front().is_array()) {
      TRY(prompts.emplace_back(), read_tokens(item.get_array(), name));
    } else {
      return invalid(name, "must be a string, a list of strings, or token ids");
    }
  }
  return prompts;
}

Result<CompletionRequest> parse_completion_request(const json::object& body, const RequestRules& rules) {
  CompletionRequest request;
  GenerationRequest& out = request.generation;
  Fields fields(body);
  TRY_VOID(read_shared_fields(fields, rules, out));
  TRY_VOID(fields.boolean("echo", request.echo));
  TRY_VOID(read_suffix(fields, request));
  TRY_VOID(read_any_prompts(fields, rules, request));
  TRY_VOID(read_max_tokens(fields, rules, request));
  TRY_VOID(read_logprob_count(fields, out.sampling.logprobs));
  TRY_VOID(read_prompt_scores(fields, rules, out.sampling.logprobs));
  TRY_VOID(refuse_other(fields, out.sampling.n));
  TRY_VOID(finish_reading(fields, rules, out));
  TRY_VOID(check_embeds_alone(request));
  if (request.echo && !out.sampling.logprobs.prompt_token_ids.empty())
    return invalid("prompt_logprob_token_ids", "cannot be combined with echo: send two requests");
  if (request.echo && out.sampling.logprobs.output)
    out.sampling.logprobs.prompt = out.sampling.logprobs.output;
  const auto answers = static_cast<std::size_t>(out.sampling.n) * request.prompts.size();
  if (answers > static_cast<std::size_t>(rules.limits.max_n))
    return invalid("n", "n times the number of prompts must be at most {}, got {}", rules.limits.max_n,
                   answers);
  return request;
}

}  // namespace octavo::openai
