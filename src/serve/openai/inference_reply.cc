#include "serve/openai/inference_reply.h"

#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <utility>

#include "http/sse.h"
#include "serve/openai/prompt_scores.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

class InferenceReply final : public Reply {
 public:
  InferenceReply(const Tokenizer& tokenizer, ReplyOptions options)
      : tokenizer_(&tokenizer), options_(std::move(options)) {
    options_.return_tokens_as_token_ids = true;
  }

  std::string open(int, const EchoedPrompt&, const Usage*) override { return ""; }

  std::string progress(const Progress& progress) override {
    json::object out = reply_of({});
    out["prompt_progress"] = progress_json(progress);
    return http::sse_event(json::serialize(out));
  }

  std::string part(const AnswerPart& part, const Usage* usage) override {
    if (part.token_ids.empty() && !part.finish) return "";
    json::object out = reply_of({choice(part)});
    if (usage) out["usage"] = usage_json(*usage);
    add_kv_transfer(std::span(&part, 1), out);
    return http::sse_event(json::serialize(out));
  }

  std::string close(const Usage& usage) override {
    if (!options_.include_usage) return stream_end(std::nullopt);
    json::object out = reply_of({});
    out["usage"] = usage_json(usage);
    return stream_end(out);
  }

  std::string failed(const Error& error) override { return stream_failed(error); }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt> prompts,
                    const Usage& usage) override {
    json::array choices;
    for (const AnswerPart& part : parts) choices.push_back(choice(part));
    json::object out = reply_of(std::move(choices));
    out["usage"] = usage_json(usage);
    out["prompt_logprobs"] = nullptr;
    if (options_.return_prompt_logprobs)
      out["prompt_logprobs"] = prompt_logprobs_json(*tokenizer_, options_, prompts.front());
    out["prompt_token_id_logprobs"] = nullptr;
    if (options_.return_prompt_scores)
      out["prompt_token_id_logprobs"] = prompt_scores_base64(prompts.front().logprobs);
    out["kv_transfer_params"] = nullptr;
    add_kv_transfer(parts, out);
    return json::serialize(out);
  }

 private:
  json::object reply_of(json::array choices) const {
    return {{"request_id", options_.id}, {"choices", std::move(choices)}};
  }

  json::object choice(const AnswerPart& part) const {
    json::object out{{"index", part.index},
                     {"logprobs", nullptr},
                     {"finish_reason", finish_reason_json(part.finish)},
                     {"token_ids", json::value_from(part.token_ids)}};
    if (part.finish) out["weight_versions"] = weight_versions_json(part);
    if (options_.logprobs) out["logprobs"] = json::object{{"content", logprobs(part)}};
    return out;
  }

  // As in vLLM, if top_logprobs would be empty, it contains the sampled token.
  json::array logprobs(const AnswerPart& part) const {
    json::array tokens = token_logprobs_json(*tokenizer_, options_, part);
    for (json::value& each : tokens) {
      json::object& token = each.as_object();
      if (!token.at("top_logprobs").as_array().empty()) continue;
      json::object sampled = token;
      sampled.erase("top_logprobs");
      token["top_logprobs"] = json::array{std::move(sampled)};
    }
    return tokens;
  }

  const Tokenizer* tokenizer_;
  ReplyOptions options_;
};

}  // namespace

std::unique_ptr<Reply> inference_reply(const Tokenizer& tokenizer, ReplyOptions options) {
  return std::make_unique<InferenceReply>(tokenizer, std::move(options));
}

}  // namespace octavo::openai
