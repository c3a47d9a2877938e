#include "serve/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/hash.h"
#include "grammar/harmony.h"
#include "serve/prompt_media.h"
#include "serve/template_messages.h"

namespace octavo {
namespace {

// Maximum number of bytes of a token in known vocabularies; only tokens for sequences of spaces may be
// longer.
constexpr std::size_t kTokenBytesMax = 128;

// Returns the maximum number of prompt tokens: the encoder's limit or, without an encoder, the context minus
// one output token.
int prompt_tokens_max(const Service& service) {
  const int source = service.engine_info.source.tokens;
  return source > 0 ? source : service.options.rules.max_model_len - 1;
}

// Returns an error if the prompt is empty or longer than the context. Also called with a lower bound of the
// number of tokens, before a long prompt is completely tokenised.
Result<> fits_context(const Service& service, std::size_t tokens, std::string_view field) {
  const int context = service.options.rules.max_model_len, source = service.engine_info.source.tokens;
  if (tokens == 0) return invalid(field, "the prompt is empty: at least 1 token is needed");
  if (source > 0 && tokens > static_cast<std::size_t>(source))
    return invalid(field, "the prompt has {} tokens; the encoder reads at most {}: shorten the prompt",
                   tokens, source);
  if (source > 0) return {};
  if (tokens < static_cast<std::size_t>(context)) return {};
  // If agents find certain words in the error, they shorten the conversation. Claude Code and Cline look for
  // the words of Anthropic's API, OpenCode and Aider for those of OpenAI's API, others for vLLM's.
  return invalid(
      field,
      "prompt is too long: {} tokens > {} maximum. This model's maximum context length is {} tokens. "
      "Please reduce the length of the input prompt, or serve with a larger --max-model-len",
      tokens, context - 1, context);
}

void truncate(std::vector<TokenId>& ids, const openai::GenerationRequest& request, int most) {
  if (!request.sampling.truncate_prompt_tokens) return;
  const int requested = *request.sampling.truncate_prompt_tokens;
  const auto keep = static_cast<std::size_t>(requested == -1 ? most : requested);
  if (ids.size() <= keep) return;
  const auto surplus = static_cast<std::ptrdiff_t>(ids.size() - keep);
  if (request.prompt.truncate_at_end)
    ids.erase(ids.end() - surplus, ids.end());
  else
    ids.erase(ids.begin(), ids.begin() + surplus);
}

// Lowers max_tokens so that it fits the context after the longest prompt.
Result<> limit_max_tokens(const Service& service, GenerationPlan& plan) {
  std::size_t longest = 0;
  for (const auto& prompt : plan.prompts) longest = std::max(longest, prompt.size());
  const int context = service.options.rules.max_model_len;
  const int room = context - static_cast<int>(longest);
  SamplingParams& p = plan.request.sampling;
  const std::string_view field = plan.request.limit_field;
  if (!field.empty() && *p.max_tokens > context)
    // Claude Code reads the last three numbers and retries with a lower max_tokens.
    return invalid(field, "{} is too large: input length and `{}` exceed context limit: {} + {} > {}",
                   *p.max_tokens, field, longest, *p.max_tokens, context);
  p.max_tokens = std::min(p.max_tokens.value_or(room), room);
  if (const auto cap = service.options.rules.defaults.max_tokens)
    p.max_tokens = std::min(*p.max_tokens, *cap);
  if (plan.request.stream.resume && std::ssize(*plan.request.stream.resume) >= *p.max_tokens)
    return invalid("resume_token_ids",
                   "already has {} tokens, so none of max_tokens = {} is left to generate",
                   plan.request.stream.resume->size(), *p.max_tokens);
  if (p.min_tokens > *p.max_tokens)
    return invalid("min_tokens", "must be <= max_tokens = {}, got {}", *p.max_tokens, p.min_tokens);
  return {};
}

// Tokenises each bad word with and without a leading space, because its tokens differ at the beginning of a
// text and within it.
Result<> tokenize_bad_words(const Tokenizer& tokenizer, SamplingParams& p) {
  for (const std::string& word : p.tokens.bad_words) {
    for (const std::string& form : {word, " " + word}) {
      TRY(std::vector<TokenId> ids, tokenizer.encode(form, false));
      if (!ids.empty() && std::ranges::find(p.tokens.bad_word_ids, ids) == p.tokens.bad_word_ids.end())
        p.tokens.bad_word_ids.push_back(std::move(ids));
    }
  }
  return {};
}

std::string new_id(std::string_view prefix, const std::string& given) {
  if (!given.empty()) return fmt::format("{}{}", prefix, given);
  return fmt::format("{}{:016x}{:016x}", prefix, secret_seed(), secret_seed());
}

openai::ReplyOptions reply_options(const Service& service, const openai::GenerationRequest& request,
                                   std::string id) {
  const SamplingParams& p = request.sampling;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = std::move(id),
          .model = request.model,
          .fingerprint = service.options.system_fingerprint,
          .role = service.options.response_role,
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .logprobs = p.logprobs.output.has_value(),
          .top_logprobs = p.logprobs.token_ids.empty() ? p.logprobs.output.value_or(0) : -1,
          .listed_logprobs = !p.logprobs.token_ids.empty(),
          .return_token_ids = request.report.token_ids,
          .return_tokens_as_token_ids = request.report.tokens_as_token_ids,
          .return_prompt_logprobs = request.report.prompt_logprobs,
          .return_prompt_scores = !p.logprobs.prompt_token_ids.empty(),
          .include_usage = request.stream.include_usage,
          .tools = request.tools,
          .n = p.n};
}

// Estimates the memory of the tokens, block hashes and block tables of all sequences, and of the prompts'
// log-probabilities. Memory for output log-probabilities is reserved later, when they arrive (Ticket::grow).
Price price_of(const GenerationPlan& plan, int vocab_size) {
  constexpr std::int64_t kAnswerBytes = 8 << 10;
  constexpr std::int64_t kTokenBytes = 8;
  constexpr std::int64_t kBeamTokenBytes = 64;  // memory for each token that was ever part of a beam
  const SamplingParams& p = plan.request.sampling;
  const std::int64_t allowed = p.tokens.allowed_token_ids.empty() ? 0 : vocab_size / 8;
  const std::int64_t grammar = plan.request.output ? std::ssize(plan.request.output->text) : 0;
  const std::int64_t params = grammar + allowed + std::ssize(p.tokens.allowed_token_ids) * 4 +
                              std::ssize(p.tokens.logit_bias) * 8 + std::ssize(p.tokens.bad_word_ids) * 64;
  const int top = p.logprobs.prompt.value_or(0);
  const std::int64_t row = p.logprobs.prompt ? kLogprobBytes * (1 + (top < 0 ? vocab_size : top)) : 0;
  const auto& listed = p.logprobs.prompt_token_ids;
  const std::int64_t scores =
      listed.empty() ? 0 : kLogprobBytes * std::ssize(listed) * (1 + std::ssize(listed.front()));
  const int shown = p.logprobs.output.value_or(0);
  const std::int64_t beam_token =
      plan.request.beam.enabled ? kBeamTokenBytes + kTokenBytes * (shown < 0 ? vocab_size : shown) : 0;
  // the server and the engine each have a copy of an image, and each request of a beam has one
  const std::int64_t image_copies = 2 + (plan.request.beam.enabled ? p.n : 0);
  Price price;
  for (const auto* parts : {&plan.images, &plan.sources})
    for (const MediaPart& part : *parts) price.bytes += image_copies * std::ssize(part.bytes);
  for (const auto& prompt : plan.prompts) {
    const std::int64_t tokens = std::ssize(prompt) + p.max_tokens.value_or(0);
    price.answers += p.n;
    price.bytes += p.n * (kAnswerBytes + params + tokens * kTokenBytes + std::ssize(prompt) * row + scores +
                          p.max_tokens.value_or(0) * beam_token);
  }
  return price;
}

Result<std::vector<TokenId>> tokens_of(const Service& service, const openai::TextOrTokens& prompt,
                                       const openai::GenerationRequest& request) {
  if (const auto* text = std::get_if<std::string>(&prompt))
    return service.tokenizer.encode(
        *text, request.prompt.add_special_tokens,
        prompt_bytes_max(service, request.sampling.truncate_prompt_tokens.has_value()));
  std::vector<TokenId> ids = std::get<std::vector<TokenId>>(prompt);
  const int vocabulary = service.options.rules.limits.vocab_size;
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary)
      return invalid("prompt", "token id {} is out of vocabulary: must be in [0, {})", id, vocabulary);
  return ids;
}

Result<std::string> echo_text(const Service& service, const openai::TextOrTokens& prompt,
                              const std::vector<TokenId>& ids) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  return service.tokenizer.decode(ids, true);
}

// Tokens of fill-in-the-middle models. before: before the prompt; behind: before the suffix; middle: before
// the output.
struct FillInMarks {
  std::string_view before, behind, middle;
};
constexpr FillInMarks kFillInMarks[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},  // Qwen Coder, CodeGemma, Granite 4
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},        // StarCoder, Granite Code
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},        // SantaCoder
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},  // DeepSeek
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},                          // Code Llama
};

Result<std::vector<TokenId>> filled_in(const Service& service, std::vector<TokenId> prompt,
                                       const std::string& suffix, const openai::GenerationRequest& request) {
  const Tokenizer& tokenizer = service.tokenizer;
  for (const FillInMarks& marks : kFillInMarks) {
    const auto before = tokenizer.id_of(marks.before), behind = tokenizer.id_of(marks.behind),
               middle = tokenizer.id_of(marks.middle);
    if (!before || !behind || !middle) continue;
    TRY(const std::vector<TokenId> rest, tokenizer.encode(suffix, false, prompt_bytes_max(service, false)));
    // number of special tokens at the beginning of the prompt
    std::size_t at = 0;
    if (request.prompt.add_special_tokens)
      while (at < prompt.size() && tokenizer.is_special(prompt[at])) ++at;
    prompt.insert(prompt.begin() + static_cast<std::ptrdiff_t>(at), *before);
    prompt.push_back(*behind);
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    prompt.push_back(*middle);
    return prompt;
  }
  return invalid("suffix",
                 "is not supported by this model: its tokenizer has no tokens for fill-in-the-middle");
}

std::optional<openai::Thinking> thinking_of(const Service& service, const openai::GenerationRequest& request,
                                            const std::vector<TokenId>& prompt) {
  const std::optional<openai::ReasoningRule>& rule = service.options.rules.reasoning;
  if (!rule) return std::nullopt;
  if (rule->harmony) {
    const grammar::ToolDialect* dialect = request.tools.dialect;
    const bool calls = dialect && dialect->form == grammar::ToolDialect::Form::harmony;
    return openai::Thinking{
        .shown = request.thinking.included,
        .harmony = openai::HarmonyReader(*rule->harmony, service.tokenizer, prompt, calls)};
  }
  if (rule->text) {
    // A grammar would apply from the first token, because text markers cannot end its delay. So with a
    // grammar there is no reasoning.
    const bool bound = request.output && request.output->field != "tools";
    if (bound || request.thinking.off) return std::nullopt;
    const bool open = rule->from_start || opens_thoughts(*rule->text, prompt, service.tokenizer);
    return openai::Thinking{
        .open = open, .shown = request.thinking.included, .text = openai::ThoughtSplitter(*rule->text, open)};
  }
  return openai::Thinking{
      .begin = rule->begin,
      .end = rule->end,
      .open = begins_with_thoughts(*rule, prompt, service.tokenizer, request.thinking.off),
      .shown = request.thinking.included,
      .label = rule->label,
      .prefix = rule->prefix,
      .calls = rule->ends_at_call ? request.tools.dialect : nullptr,
      .tools = request.tools.tools};
}

// For gpt-oss, applies the constraint only to the answer's last message. Constraints of strict tools
// (tools.bound) already have this form.
Result<> bind_final_message(const openai::HarmonyReader& reader, openai::GenerationRequest& request) {
  if (!request.output || reader.section() != openai::HarmonyReader::Section::header) return {};
  if (request.tools.bound) return {};
  TRY(request.output, grammar::in_final_message(*std::move(request.output)));
  return {};
}

}  // namespace

Result<GenerationPlan> plan_generation(const Service& service, openai::GenerationRequest request,
                                       std::vector<std::vector<TokenId>> prompts, PromptMedia media,
                                       std::string_view id_prefix, const ReplyMaker& reply) {
  // A session names the prefix of one prompt, so it cannot be used with several prompts or beams.
  if (prompts.size() > 1 || request.beam.enabled || (request.session && request.session->key.id.empty()))
    request.session.reset();
  TRY(StopSplitter stops,
      StopSplitter::create(request.sampling.stop, request.sampling.include_stop_str_in_output));
  TRY_VOID(tokenize_bad_words(service.tokenizer, request.sampling));
  if (request.kv_transfer && prompts.size() > 1)
    return invalid("kv_transfer_params", "needs a request with exactly one prompt, got {}", prompts.size());
  if (request.stream.resume && prompts.size() > 1)
    return invalid("resume_token_ids", "needs a request with exactly one prompt, got {}", prompts.size());
  if (request.beam.enabled && request.sampling.logprobs.prompt)
    return invalid("echo", "cannot be combined with use_beam_search and logprobs");
  if (const EngineInfo::SourceRule& source = service.engine_info.source; source.tokens > 0)
    for (std::vector<TokenId>& prompt : prompts) {
      media.sources.push_back(source_of(prompt));
      prompt = source.begin;
    }
  const std::string id = new_id(id_prefix, request.request_id);
  request.request_id = id;
  openai::ReplyOptions options = reply_options(service, request, id);
  GenerationPlan plan{.request = std::move(request),
                      .prompts = std::move(prompts),
                      .images = std::move(media.images),
                      .sources = std::move(media.sources),
                      .echo_texts = {},
                      .stops = std::move(stops),
                      .reply = reply(service.tokenizer, std::move(options)),
                      .arrived_us = now_us()};
  if (const auto& tokens = plan.request.thinking.token_budget) {
    const openai::ReasoningRule& rule = service.options.rules.reasoning.value();
    plan.thinking_budget = ThinkingBudget{.begin = rule.begin, .end = rule.end, .tokens = *tokens};
  }
  TRY_VOID(limit_max_tokens(service, plan));
  plan.price = price_of(plan, service.options.rules.limits.vocab_size);
  TRY_VOID(service.admission.possible(plan.price));
  return plan;
}

std::size_t prompt_bytes_max(const Service& service, bool truncated) {
  if (truncated) return kEncodeBytesMax;
  return std::min(kEncodeBytesMax,
                  static_cast<std::size_t>(prompt_tokens_max(service) + 1) * kTokenBytesMax);
}

Result<ChatTokens> chat_tokens(const Service& service, const openai::ChatPrompt& prompt,
                               bool add_special_tokens, std::size_t bytes_max) {
  std::optional<ChatTemplate> own;
  if (!prompt.chat_template.empty()) {
    TRY(own, ChatTemplate::compile(prompt.chat_template, service.tokenizer.config().special_tokens));
  }
  const ChatTemplate* const served =
      prompt.tools.empty() ? service.templates.plain : service.templates.with_tools;
  const ChatTemplate* const chat_template = own ? &*own : served;
  if (!chat_template)
    return invalid(
        "messages",
        "the model has no chat template: use /v1/completions, or start the server with --chat-template");
  const grammar::ToolDialect* const dialect = service.options.rules.tool_dialect;
  TRY(const std::string messages,
      messages_for_template(*chat_template, prompt,
                            {.format = service.options.content_format,
                             .media = service.options.media.images || service.options.media.prompt_sound,
                             .write_tools = !dialect || dialect->name == "hermes",
                             .token = [&](openai::MediaKind kind) { return token_of(service, kind); }}));
  const ChatInput input{.messages = messages,
                        .tools = prompt.tools,
                        .documents = prompt.documents,
                        .kwargs = prompt.kwargs,
                        .add_generation_prompt = prompt.add_generation_prompt,
                        .continue_final_message = prompt.continue_final_message};
  TRY(std::string text, chat_template->render(input));
  if (!prompt.plain) TRY_VOID(check_roles(*chat_template, input, text));
  ChatTokens tokens;
  TRY(tokens.images, read_media(service, prompt, text));
  auto ids = service.tokenizer.encode(text, add_special_tokens, bytes_max);
  if (!ids) {
    ids.error().field = "messages";
    return std::unexpected(std::move(ids).error());
  }
  tokens.ids = *std::move(ids);
  TRY_VOID(place_media(service, tokens.ids, tokens.images));
  return tokens;
}

Result<GenerationPlan> prepare_chat(const Service& service, openai::ChatRequest request) {
  std::string echo = std::move(request.prompt.echo);
  const ReplyMaker reply = [&echo](const Tokenizer& tokenizer, openai::ReplyOptions options) {
    options.echo = std::move(echo);
    return openai::chat_reply(tokenizer, std::move(options));
  };
  return prepare_chat_as(service, std::move(request), "chatcmpl-", reply);
}

Result<GenerationPlan> prepare_chat_as(const Service& service, openai::ChatRequest request,
                                       std::string_view id_prefix, const ReplyMaker& reply) {
  openai::GenerationRequest& requested = request.generation;
  const bool truncated = requested.sampling.truncate_prompt_tokens.has_value();
  TRY_VOID(service.admission.possible({.answers = requested.sampling.n}));
  if (truncated && !request.prompt.media.empty())
    return invalid("truncate_prompt_tokens", "cannot be combined with images or sound");
  ChatTokens tokens;
  if (!requested.prompt.forwarded.empty() && request.prompt.media.empty()) {
    tokens.ids = std::move(requested.prompt.forwarded);
  } else {
    TRY(tokens, chat_tokens(service, request.prompt, requested.prompt.add_special_tokens,
                            prompt_bytes_max(service, truncated)));
  }
  if (requested.adapter.empty()) requested.adapter = adapter_of(service, request.prompt.media);
  auto& [ids, images] = tokens;
  truncate(ids, requested, prompt_tokens_max(service));
  TRY_VOID(fits_context(service, ids.size(), "messages"));
  std::vector<std::vector<TokenId>> prompts;
  const std::optional<openai::Thinking> thinking = thinking_of(service, requested, ids);
  if (thinking && thinking->harmony) TRY_VOID(bind_final_message(*thinking->harmony, requested));
  prompts.push_back(std::move(ids));
  TRY(GenerationPlan plan, plan_generation(service, std::move(requested), std::move(prompts),
                                           {.images = std::move(images)}, id_prefix, reply));
  plan.thinking = thinking;
  return plan;
}

Result<GenerationPlan> prepare_completion(const Service& service, openai::CompletionRequest request) {
  return prepare_completion_as(service, std::move(request), "cmpl-", openai::completion_reply);
}

Result<GenerationPlan> prepare_completion_as(const Service& service, openai::CompletionRequest request,
                                             std::string_view id_prefix, const ReplyMaker& reply) {
  TRY_VOID(service.admission.possible(
      {.answers = request.generation.sampling.n * static_cast<int>(request.prompts.size())}));
  if (request.echo && service.engine_info.source.tokens > 0)
    return invalid("echo",
                   "is not supported for {}: an encoder reads the prompt, so the answer does not continue "
                   "the prompt's text",
                   service.engine_info.architecture);
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::string> echoes;
  for (const openai::TextOrTokens& prompt : request.prompts) {
    std::vector<TokenId> ids = std::move(request.generation.prompt.forwarded);
    if (ids.empty() || request.echo || request.prompts.size() > 1 || !request.embeds.empty()) {
      TRY(ids, tokens_of(service, prompt, request.generation));
    }
    if (request.suffix) {
      TRY(ids, filled_in(service, std::move(ids), *request.suffix, request.generation));
    }
    truncate(ids, request.generation, prompt_tokens_max(service));
    TRY_VOID(fits_context(service, ids.size(), "prompt"));
    if (request.echo) {
      TRY(echoes.emplace_back(), echo_text(service, prompt, ids));
    }
    prompts.push_back(std::move(ids));
  }
  TRY(GenerationPlan plan, plan_generation(service, std::move(request.generation), std::move(prompts),
                                           {.sources = std::move(request.embeds)}, id_prefix, reply));
  plan.echo_texts = std::move(echoes);
  plan.prompt_only = request.prompt_only;
  return plan;
}

}  // namespace octavo
