// Fuzz test: passes arbitrary bytes to the parsers of /v1/chat/completions and /v1/completions, as bodies
// and as messages. The result must be a request or an error, never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "fuzz/json_mutator.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/completion_request.h"

namespace {

// These bodies together contain every field of both routes.
const octavo::fuzz::JsonMutator& mutator() {
  static const octavo::fuzz::JsonMutator m({
      R"({"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.5, "top_p": 0.9,
          "top_k": 5, "min_p": 0.1, "n": 2, "seed": 7, "stop": ["a", "b"], "stop_token_ids": [3], "stream": true,
          "stream_options": {"include_usage": true, "continuous_usage_stats": true}, "logprobs": true,
          "top_logprobs": 3, "prompt_logprobs": 1, "max_tokens": 10, "max_completion_tokens": 9, "min_tokens": 1,
          "presence_penalty": 0.1, "frequency_penalty": 0.2, "repetition_penalty": 1.1, "logit_bias": {"5": 1.5},
          "bad_words": ["x y"], "allowed_token_ids": [1, 2], "ignore_eos": true, "priority": 1, "cache_salt": "s",
          "skip_special_tokens": false, "include_stop_str_in_output": true, "truncate_prompt_tokens": 8,
          "truncation_side": "left", "logprob_token_ids": [4], "return_token_ids": true,
          "return_tokens_as_token_ids": true, "request_id": "r", "user": "u", "metadata": {"k": "v"},
          "repetition_detection": {"max_pattern_size": 4, "min_pattern_size": 2, "min_count": 3},
          "spaces_between_special_tokens": true, "service_tier": "auto", "stream_interval": 2})",
      R"({"messages": [{"role": "system", "content": [{"type": "text", "text": "t"}], "name": "n"},
          {"role": "assistant", "content": null, "reasoning": "r", "reasoning_content": "r", "tool_calls": [{"id": "c",
           "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
          {"role": "tool", "tool_call_id": "c", "content": "1"}, {"role": "user", "content": "go"}],
          "tools": [{"type": "function", "function": {"name": "f", "description": "d", "strict": true,
           "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}],
          "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false,
          "chat_template": "{{ messages }}", "chat_template_kwargs": {"enable_thinking": true}, "documents": [{"t": "x"}],
          "add_generation_prompt": true, "continue_final_message": false, "add_special_tokens": true,
          "reasoning_effort": "low", "include_reasoning": true})",
      R"({"messages": [{"role": "user", "content": "x"}], "tool_choice": "required", "response_format":
          {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "object",
           "properties": {"k": {"type": "string", "enum": ["a"]}}, "additionalProperties": false}}}})",
      R"({"messages": [{"role": "user", "content": "x"}], "structured_outputs": {"json": {"type": "object"},
          "regex": "a+", "choice": ["a", "b"], "grammar": "root ::= \"a\"", "json_object": true,
          "structural_tag": "{}", "disable_additional_properties": true, "disable_any_whitespace": true,
          "whitespace_pattern": " "}, "response_format": {"type": "structural_tag", "format": {"type": "any_text"}}})",
      R"({"model": "m", "prompt": ["a", "b"], "best_of": 1, "echo": true, "suffix": "s", "logprobs": 2, "max_tokens": 3,
          "use_beam_search": false, "length_penalty": 1.0, "prompt_embeds": null})",
      R"({"prompt": [[1, 2], [3]], "max_tokens": 3, "response_format": {"type": "json_object"}})",
      R"({"prompt": [1, 2, 3], "tool_choice": "none", "guided_json": {}})",
  });
  return m;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return mutator()(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo;
  static const openai::RequestRules rules = [] {
    openai::RequestRules r;
    r.model_names = {"m"};
    r.limits.vocab_size = 1000;
    r.max_model_len = 4096;
    return r;
  }();
  const auto body = openai::parse_body({reinterpret_cast<const char*>(data), size});
  if (!body) return 0;
  if (const auto chat = openai::parse_chat_request(*body, rules)) {
    const SamplingParams& p = chat->generation.sampling;
    CHECK(p.n >= 1 && p.temperature >= 0 && p.temperature <= 2 && (!p.max_tokens || *p.max_tokens >= 1));
    CHECK(openai::parse_body("{\"m\":" + chat->prompt.messages + "}").has_value() || size > 60);
  }
  if (const auto completion = openai::parse_completion_request(*body, rules)) {
    CHECK(!completion->prompts.empty());
    const auto answers =
        static_cast<std::size_t>(completion->generation.sampling.n) * completion->prompts.size();
    CHECK(answers <= static_cast<std::size_t>(rules.limits.max_n));
  }
  return 0;
}
