// Fuzz test: passes arbitrary bytes to the parsers of all routes except chats and completions
// (chat_request_fuzz.cc). The result must be a request or an error, never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "fuzz/json_mutator.h"
#include "http/form.h"
#include "serve/anthropic/messages_request.h"
#include "serve/openai/pooling_request.h"
#include "serve/openai/response_store.h"
#include "serve/openai/responses_request.h"
#include "serve/openai/transcription_request.h"

namespace {

using namespace octavo;

const fuzz::JsonMutator& mutator() {
  static const fuzz::JsonMutator m({
      R"({"model": "m", "input": "hi", "instructions": "be kind", "max_output_tokens": 20, "temperature": 0.5,
          "top_p": 0.9, "store": true, "background": false, "stream": false, "previous_response_id": null,
          "metadata": {"k": "v"}, "truncation": "disabled", "parallel_tool_calls": true, "top_logprobs": 2,
          "include": ["message.output_text.logprobs"], "reasoning": {"effort": "low", "summary": "auto"},
          "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true}},
          "tool_choice": "auto", "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"},
          "strict": true}], "max_tool_calls": 3, "service_tier": "auto", "user": "u", "prompt_cache_key": "k"})",
      R"({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "t"}]},
          {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "h"}]},
          {"type": "message", "id": "m", "role": "assistant", "status": "completed",
           "content": [{"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "no"}]},
          {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
          {"type": "function_call_output", "call_id": "c", "output": "1"},
          {"role": "developer", "content": "d"}], "tool_choice": {"type": "function", "name": "f"}})",
      R"({"model": "m", "max_tokens": 10, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
          "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "a"},
            {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]},
           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": false,
             "content": [{"type": "text", "text": "1"}]}, {"type": "image", "source": {"type": "base64",
             "media_type": "image/png", "data": "AAAA"}}]}],
          "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
          "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true}, "stop_sequences": ["x"],
          "thinking": {"type": "enabled", "budget_tokens": 5}, "top_k": 3, "top_p": 0.5, "temperature": 1,
          "stream": true, "metadata": {"user_id": "u"}, "service_tier": "auto"})",
      R"({"model": "m", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 8, "truncate_prompt_tokens": -1,
          "add_special_tokens": true, "normalize": false, "use_activation": true, "priority": 0, "request_id": "r",
          "user": "u"})",
      R"({"input": [[1, 2], [3]], "text_1": "q", "text_2": ["a", "b"], "queries": ["q"], "documents": ["a", {"text": "b"}],
          "query": "q", "top_n": 1, "return_documents": true, "max_tokens_per_doc": null})",
  });
  return m;
}

openai::RequestRules rules() {
  openai::RequestRules r;
  r.model_names = {"m"};
  r.limits.vocab_size = 1000;
  r.max_model_len = 4096;
  r.tool_dialect = grammar::tool_dialect("hermes");
  r.reasoning = openai::ReasoningRule{.begin = 1, .end = 2};
  return r;
}

void check(const openai::ChatRequest& chat) {
  const SamplingParams& p = chat.generation.sampling;
  CHECK(p.n >= 1 && p.temperature >= 0 && p.temperature <= 2 && (!p.max_tokens || *p.max_tokens >= 1));
  CHECK(boost::json::parse(chat.prompt.messages).is_array());
}

void read_json(std::string_view text, const openai::RequestRules& rules) {
  static const openai::ResponseStore stored(1 << 20);
  const auto body = openai::parse_body(text);
  if (!body) return;
  if (const auto request = openai::parse_responses_request(*body, rules, stored)) check(request->chat);
  if (const auto request = anthropic::parse_messages_request(*body, rules)) check(*request);
  (void)anthropic::parse_count_tokens_request(*body, rules);
  if (const auto request = openai::parse_embedding_request(*body, rules))
    CHECK(!request->input.empty() && request->input.size() <= std::size_t{openai::kTextsMax});
  if (const auto request = openai::parse_score_request(*body, rules))
    CHECK(request->queries.size() == 1 || request->queries.size() == request->documents.size());
  if (const auto request = openai::parse_rerank_request(*body, rules)) CHECK(!request->documents.empty());
}

// Parses the text as the multipart form of a transcription request.
void read_form(std::string_view text, const openai::RequestRules& rules) {
  const auto parts = http::parse_form("multipart/form-data; boundary=b", text);
  if (parts) (void)openai::parse_transcription_request(*parts, text.size() % 2 == 0, rules);
}

void read_fields(std::string_view text, const openai::RequestRules& rules) {
  const auto body = openai::parse_body(text);
  if (!body) return;
  std::vector<std::string> values;
  values.reserve(body->size());
  std::vector<http::FormPart> form;
  for (const auto& [key, value] : *body) {
    const auto* plain = value.if_string();
    values.push_back(plain ? std::string(*plain) : boost::json::serialize(value));
    form.push_back({.name = std::string(key), .filename = {}, .data = values.back()});
  }
  form.push_back({.name = "file", .filename = "a.wav", .data = "RIFF"});
  if (const auto request = openai::parse_transcription_request(form, false, rules))
    CHECK(request->generation.sampling.n >= 1);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return mutator()(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const openai::RequestRules all = rules();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_json(text, all);
  read_fields(text, all);
  read_form(text, all);
  return 0;
}
