#include "serve/openai/response_fields.h"

#include <boost/json/array.hpp>
#include <string_view>
#include <utility>

namespace octavo::openai {

namespace json = boost::json;

namespace {

json::value or_null(const json::object& body, std::string_view name) {
  const json::value* value = body.if_contains(name);
  return value ? *value : json::value(nullptr);
}

json::value or_default(const json::object& body, std::string_view name, json::value value) {
  const json::value* given = body.if_contains(name);
  return given && !given->is_null() ? *given : std::move(value);
}

}  // namespace

json::object response_fields(const json::object& body, const ResponsesRequest& request) {
  const SamplingParams& p = request.chat.generation.sampling;
  json::object out{{"object", "response"},
                   {"background", request.background},
                   {"error", nullptr},
                   {"incomplete_details", nullptr},
                   {"model", request.chat.generation.model},
                   {"output", json::array()},
                   {"store", request.store},
                   {"temperature", p.temperature},
                   {"top_p", p.top_p},
                   {"parallel_tool_calls", or_default(body, "parallel_tool_calls", true)},
                   {"tool_choice", or_default(body, "tool_choice", "auto")},
                   {"tools", or_default(body, "tools", json::array())},
                   {"text", or_default(body, "text", {{"format", {{"type", "text"}}}})},
                   {"truncation", or_default(body, "truncation", "disabled")},
                   {"top_logprobs", or_default(body, "top_logprobs", 0)},
                   {"service_tier", or_default(body, "service_tier", "auto")},
                   {"metadata", or_default(body, "metadata", json::object())},
                   {"reasoning", or_default(body, "reasoning", {{"effort", nullptr}, {"summary", nullptr}})}};
  for (const std::string_view name :
       {"instructions", "max_output_tokens", "max_tool_calls", "previous_response_id"})
    out[name] = or_null(body, name);
  out["conversation"] = nullptr;
  if (!request.conversation_id.empty()) out["conversation"] = json::object{{"id", request.conversation_id}};
  for (const std::string_view name : {"user", "safety_identifier", "prompt_cache_key"})
    if (const json::value* given = body.if_contains(name); given && !given->is_null()) out[name] = *given;
  return out;
}

}  // namespace octavo::openai
