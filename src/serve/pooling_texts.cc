#include "serve/pooling_texts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "serve/prepare.h"

namespace octavo {
namespace {

void cut_to(std::vector<TokenId>& ids, std::size_t most, bool keep_last) {
  const std::size_t cut = ids.size() - std::min(ids.size(), most);
  if (keep_last)
    ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut));
  else
    ids.resize(ids.size() - cut);
}

// Appends padding tokens up to the model's maximum, as vLLM does: the model reads them like other tokens.
Result<> pad(const Service& service, std::vector<TokenId>& ids) {
  const std::string_view token = service.tokenizer.config().special_token("pad_token");
  const std::optional<TokenId> id = service.tokenizer.id_of(token);
  if (!id) return invalid("padding", "\"max_length\" needs a tokenizer with a pad_token: use \"do_not_pad\"");
  ids.resize(std::max(ids.size(), static_cast<std::size_t>(service.engine_info.max_model_len)), *id);
  return {};
}

// Returns at most `most` tokens: the special tokens that enclose a text, and between them the last tokens of
// the text.
Result<std::vector<TokenId>> last_tokens(const Service& service, const std::string& text, std::size_t most) {
  TRY(Tokenizer::Texts all, service.tokenizer.encode_texts(text, std::nullopt));
  TRY(std::vector<TokenId> plain, service.tokenizer.encode(text, false));
  const auto begin = std::ranges::search(all.ids, plain).begin();
  if (plain.empty() || begin == all.ids.end())
    return invalid("truncation_side", "\"left\" is not supported by this tokenizer");
  const auto special = all.ids.size() - plain.size();
  const std::size_t cut = all.ids.size() - std::min(all.ids.size(), std::max(most, special));
  all.ids.erase(begin, begin + static_cast<std::ptrdiff_t>(cut));
  return std::move(all.ids);
}

std::size_t max_model_len_of(const Service& service) {
  return static_cast<std::size_t>(service.engine_info.max_model_len);
}

}  // namespace

std::size_t longest_text(const Service& service, Task task) {
  const std::size_t most = max_model_len_of(service);
  return task == Task::embed ? std::max(most, static_cast<std::size_t>(service.options.pooling.longest))
                             : most;
}

Result<std::size_t> most_tokens(const openai::PoolingFields& fields, std::size_t longest) {
  if (!fields.truncate) return kEncodeBytesMax;
  if (*fields.truncate == -1) return longest;
  const auto most = static_cast<std::size_t>(*fields.truncate);
  if (most > longest)
    return failure(ErrorCode::invalid_argument,  // vLLM's words
                   "truncate_prompt_tokens value is greater than max_model_len. Please request a smaller "
                   "truncation size.");
  return most;
}

Result<> check_length(std::size_t tokens, std::size_t most, std::string_view field) {
  if (tokens == 0) return invalid(field, "a text is empty, but needs at least 1 token");
  if (tokens <= most) return {};
  return invalid(
      field,
      // "Please .. input prompt" are vLLM's words.
      "a text has {} tokens, but the model accepts at most {}. Please reduce the length of the input prompt, "
      "or set truncate_prompt_tokens",
      tokens, most);
}

Result<Tokenizer::Texts> tokens_of(const Service& service, const openai::TextOrTokens& input,
                                   const openai::PoolingFields& fields, std::size_t longest,
                                   std::string_view field) {
  TRY(const std::size_t most, most_tokens(fields, longest));
  Tokenizer::Texts texts;
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&input)) {
    texts.ids = *ids;
  } else if (!fields.add_special_tokens) {
    TRY(texts.ids, service.tokenizer.encode(std::get<std::string>(input), false));
  } else if (fields.keep_last && fields.truncate) {
    TRY(texts.ids, last_tokens(service, std::get<std::string>(input), most));
  } else {
    TRY(texts, service.tokenizer.encode_texts(std::get<std::string>(input), std::nullopt, most));
  }
  cut_to(texts.ids, most, fields.keep_last);
  TRY_VOID(check_length(texts.ids.size(), longest, field));
  if (fields.pad) TRY_VOID(pad(service, texts.ids));
  return texts;
}

Result<std::string> shortened(const Service& service, const std::string& text, int most) {
  if (most == 0) return text;
  std::string kept = text;
  for (auto left = static_cast<std::size_t>(most);; --left) {
    TRY(std::vector<TokenId> ids, service.tokenizer.encode(kept, false));
    if (ids.size() <= static_cast<std::size_t>(most)) return kept;
    if (left == 0) return "";
    // The shorter text may have other tokens at its end, and then more than `left`.
    ids.resize(left);
    TRY(kept, service.tokenizer.decode(ids, false));
  }
}

Result<ChatTokens> tokens_of_chat(const Service& service, const openai::ChatPrompt& chat,
                                  const openai::PoolingFields& fields, std::size_t longest) {
  TRY(const std::size_t most, most_tokens(fields, longest));
  TRY(ChatTokens tokens, chat_tokens(service, chat, fields.add_special_tokens, kEncodeBytesMax));
  if (!tokens.images.empty() && tokens.ids.size() > std::min(most, max_model_len_of(service)))
    return invalid("messages",
                   "the conversation has {} tokens, but a conversation with images may have at most {}: send "
                   "fewer or smaller images",
                   tokens.ids.size(), std::min(most, max_model_len_of(service)));
  cut_to(tokens.ids, most, fields.keep_last);
  TRY_VOID(check_length(tokens.ids.size(), longest, "messages"));
  if (fields.pad) TRY_VOID(pad(service, tokens.ids));
  return tokens;
}

std::string_view prompt_for(const Service& service, const std::string& input_type) {
  const auto& prompts = service.options.pooling.text_prompts;
  const auto named = [&](std::string_view name) {
    const auto found = prompts.find(name);
    return found == prompts.end() ? std::string_view() : std::string_view(found->second);
  };
  if (const std::string_view own = named(input_type); !own.empty()) return own;
  if (input_type == "search_query" || input_type == "retrieval.query") return named("query");
  if (input_type != "search_document" && input_type != "retrieval.passage") return {};
  const std::string_view document = named("document");
  return document.empty() ? named("passage") : document;
}

// Accepts Cohere's types even if the model has no prompt for them, because Cohere's clients always send one.
Result<> check_input_type(const Service& service, const openai::EmbedByTypeRequest& request) {
  constexpr std::string_view kTypes[] = {"search_document", "search_query", "classification", "clustering",
                                         "image"};
  const auto& prompts = service.options.pooling.text_prompts;
  const std::string& type = request.input_type;
  if (type.empty() || std::ranges::find(kTypes, type) != std::end(kTypes) || prompts.contains(type) ||
      request.fields.adapter == type)
    return {};
  std::set<std::string_view> known(std::begin(kTypes), std::end(kTypes));
  for (const auto& [name, prompt] : prompts) known.insert(name);
  return invalid("input_type", "Unsupported input_type \"{}\": must be one of {}", type,
                 fmt::join(known, ", "));
}

}  // namespace octavo
