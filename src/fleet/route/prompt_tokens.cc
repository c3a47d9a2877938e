#include "fleet/route/prompt_tokens.h"

#include "base/log.h"
#include "openai/request_fields.h"
#include "openai/routes.h"
#include "serve/openai/chat_request.h"
#include "serve/template_messages.h"

namespace octavo::fleet {
namespace {

// larger bodies are not tokenised; this size takes up to a second
constexpr std::size_t kTokenisedBytesMax = 1 << 20;
// after this number of consecutive mismatches, prompts are not tokenised any more
constexpr int kMismatchesMax = 8;

}  // namespace

Result<PromptTokens> PromptTokens::make(std::shared_ptr<const Tokenizer> tokenizer) {
  PromptTokens tokens(std::move(tokenizer));
  const TokenizerConfig& config = tokens.tokenizer_->config();
  for (const bool tools : {false, true}) {
    const auto& source = config.chat_template(tools);
    if (source.empty()) continue;
    TRY(auto compiled, ChatTemplate::compile(source, config.special_tokens));
    (tools ? tokens.with_tools_ : tokens.plain_) = std::move(compiled);
  }
  return tokens;
}

void PromptTokens::write(const http::Request& request, RouteRequest& route) const {
  const openai::Route* known = openai::find_route(request.path);
  if (route.tokens_are_exact || !known || !known->renders || request.body.size() > kTokenisedBytesMax) return;
  if (*mismatches_ >= kMismatchesMax) return;
  const auto found = ids(request, known->chat, route);
  if (!found) return;
  route.tokens.assign(found->begin(), found->end());
  route.tokens_are_exact = true;
}

bool PromptTokens::compare(std::size_t tokens, std::int64_t reported) const {
  if (static_cast<std::int64_t>(tokens) == reported) {
    if (*mismatches_ < kMismatchesMax) *mismatches_ = 0;
    return true;
  }
  if (++*mismatches_ == kMismatchesMax)
    log_warning(
        "--tokenizer-path does not match the tokenizer of the replicas: it counts {} tokens in a prompt for "
        "which a replica reports {}, and {} prompts in a row differ. From now on, the router estimates which "
        "blocks are cached",
        tokens, reported, kMismatchesMax);
  return false;
}

Result<std::vector<std::int32_t>> PromptTokens::ids(const http::Request& request, bool chat,
                                                    const RouteRequest& route) const {
  TRY(const boost::json::object body, openai::parse_body(request.body));
  openai::Fields fields(body);
  bool add_special_tokens = !chat;  // a chat template writes the special tokens itself
  TRY_VOID(fields.boolean("add_special_tokens", add_special_tokens));
  if (!chat) return tokenizer_->encode(route.text, add_special_tokens);
  TRY(const openai::ChatPrompt prompt, openai::read_chat_prompt(fields, {}));
  const auto& chat_template = prompt.tools.empty() ? plain_ : with_tools_;
  if (!chat_template) return invalid("messages", "the model has no chat template");
  if (!chat_template->habits().reads_tools && (prompt.calls || !prompt.tools.empty()))
    return invalid("tools",
                   "the template reads no tools, and the replica decides in which form it shows them");
  TRY(const std::string messages, messages_for_template(*chat_template, prompt, {}));
  TRY(const std::string text,
      chat_template->render({.messages = messages,
                             .tools = prompt.tools,
                             .documents = prompt.documents,
                             .kwargs = prompt.kwargs,
                             .add_generation_prompt = prompt.add_generation_prompt,
                             .continue_final_message = prompt.continue_final_message}));
  return tokenizer_->encode(text, add_special_tokens);
}

}  // namespace octavo::fleet
