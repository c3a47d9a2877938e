#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <unordered_map>

#include "http/sse.h"
#include "serve/openai/prompt_scores.h"
#include "serve/openai/reply.h"
#include "text/utf8.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

// Returns the number of code points, because text_offset counts characters instead of bytes.
std::int64_t code_points(std::string_view text) {
  std::int64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

// Computes text_offset. A token that completes a character has the position of that character.
struct TextPosition {
  std::int64_t characters = 0;
  std::string begun{};  // bytes of an incomplete character

  void advance(std::string_view bytes) {
    begun += bytes;
    const std::size_t rest = incomplete_utf8_tail(begun);
    characters += code_points(replace_invalid_utf8(std::string_view(begun).substr(0, begun.size() - rest)));
    begun.erase(0, begun.size() - rest);
  }
};

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, with one element per position.
struct LogprobLists {
  json::array tokens, token_logprobs, top_logprobs, text_offset;

  json::object take() {
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(token_logprobs)},
            {"top_logprobs", std::move(top_logprobs)},
            {"text_offset", std::move(text_offset)}};
  }
};

class CompletionReply final : public Reply {
 public:
  CompletionReply(const Tokenizer& tokenizer, ReplyOptions options)
      : tokenizer_(&tokenizer), options_(std::move(options)) {}

  std::string open(int index, const EchoedPrompt& prompt, const Usage*) override {
    if (options_.return_token_ids) prompt_ids_[index] = prompt.token_ids;
    return "";
  }

  std::string progress(const Progress& progress) override {
    json::object out = head();
    out["choices"] = json::array{
        json::object{{"index", 0}, {"text", ""}, {"logprobs", nullptr}, {"finish_reason", nullptr}}};
    out["prompt_progress"] = progress_json(progress);
    return http::sse_event(json::serialize(out));
  }

  std::string part(const AnswerPart& part, const Usage* usage) override {
    json::object shown = choice(part);
    if (const auto ids = prompt_ids_.extract(part.index))
      shown["prompt_token_ids"] = json::value_from(ids.mapped());
    json::object out = head();
    out["choices"] = json::array{std::move(shown)};
    if (usage) out["usage"] = usage_json(*usage);
    add_kv_transfer(std::span(&part, 1), out);
    return http::sse_event(json::serialize(out));
  }

  std::string close(const Usage& usage) override {
    if (!options_.include_usage) return stream_end(std::nullopt);
    json::object out = head();
    out["choices"] = json::array();
    add_usage(usage, out);
    return stream_end(out);
  }

  std::string failed(const Error& error) override { return stream_failed(error); }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt> prompts,
                    const Usage& usage) override {
    json::array choices;
    for (const AnswerPart& part : parts) {
      json::object one = choice(part);
      const EchoedPrompt& prompt = prompts[static_cast<std::size_t>(part.index / options_.n)];
      one["prompt_logprobs"] = options_.return_prompt_logprobs
                                   ? prompt_logprobs_json(*tokenizer_, options_, prompt)
                                   : json::value(nullptr);
      if (options_.return_prompt_scores)
        one["prompt_token_id_logprobs"] = prompt_scores_base64(prompt.logprobs);
      // As in vLLM, fields that the request did not enable are null.
      if (!options_.return_token_ids) one["token_ids"] = nullptr;
      one["prompt_token_ids"] = nullptr;
      if (options_.return_token_ids) one["prompt_token_ids"] = json::value_from(prompt.token_ids);
      choices.push_back(std::move(one));
    }
    json::object out = head();
    out["choices"] = std::move(choices);
    add_usage(usage, out);
    add_unused(out);
    add_kv_transfer(parts, out);
    return json::serialize(out);
  }

 private:
  json::object head() const {
    json::object out{{"id", options_.id},
                     {"object", "text_completion"},
                     {"created", options_.created},
                     {"model", options_.model}};
    out["system_fingerprint"] =
        options_.fingerprint.empty() ? json::value(nullptr) : json::value(options_.fingerprint);
    return out;
  }

  json::object choice(const AnswerPart& part) {
    json::object out{{"index", part.index},
                     {"text", part.text},
                     {"logprobs", logprobs(part)},
                     {"finish_reason", finish_reason_json(part.finish)},
                     {"stop_reason", stop_reason_json(part.stop_reason)}};
    if (options_.return_token_ids) out["token_ids"] = json::value_from(part.token_ids);
    if (options_.return_token_ids && part.finish) out["weight_versions"] = weight_versions_json(part);
    return out;
  }

  json::value logprobs(const AnswerPart& part) {
    if (!options_.logprobs) return nullptr;
    LogprobLists lists;
    TextPosition& position = positions_[part.index];
    std::string_view text = part.text;
    for (const TokenLogprobs& entry : part.logprobs) {
      lists.text_offset.emplace_back(position.characters);
      position.advance(bytes_in(entry.id, text));
      add(entry, lists);
    }
    return lists.take();
  }

  // Returns the bytes of the token in the text, and removes them from the front of the text. The text may
  // lack special tokens and the space before the first word.
  std::string bytes_in(TokenId id, std::string_view& text) const {
    std::string bytes = tokenizer_->token_bytes(id).value_or("");
    if (!text.starts_with(bytes)) {
      if (tokenizer_->is_special(id)) return "";
      if (bytes.starts_with(' ') && text.starts_with(std::string_view(bytes).substr(1))) bytes.erase(0, 1);
    }
    text.remove_prefix(std::min(bytes.size(), text.size()));
    return bytes;
  }

  // An entry of rank 0 is the prompt's first token, which has no probability.
  void add(const TokenLogprobs& entry, LogprobLists& lists) const {
    const std::string token = shown(entry.id);
    lists.tokens.emplace_back(token);
    if (entry.rank == 0) {
      lists.token_logprobs.emplace_back(nullptr);
      lists.top_logprobs.emplace_back(nullptr);
      return;
    }
    lists.token_logprobs.emplace_back(shown_logprob(entry.logprob));
    json::object top{{token, shown_logprob(entry.logprob)}};
    for (const auto& [id, logprob] : most_likely(entry, options_.top_logprobs))
      top.emplace(shown(id), shown_logprob(logprob));
    lists.top_logprobs.push_back(std::move(top));
  }

  std::string shown(TokenId id) const {
    return shown_token(*tokenizer_, id, options_.return_tokens_as_token_ids);
  }

  const Tokenizer* tokenizer_;
  ReplyOptions options_;
  std::unordered_map<int, TextPosition> positions_;  // the key is the index of the answer
  // prompt tokens of answers whose first part is not written yet
  std::unordered_map<int, std::vector<TokenId>> prompt_ids_;
};

}  // namespace

std::unique_ptr<Reply> completion_reply(const Tokenizer& tokenizer, ReplyOptions options) {
  return std::make_unique<CompletionReply>(tokenizer, std::move(options));
}

}  // namespace octavo::openai
