#include "fleet/relay/disaggregation.h"

#include "base/exact_json.h"
#include "fleet/relay/json_body.h"
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::string_view kParams = "kv_transfer_params";

bool is_set(const json::object& request, std::string_view name) {
  const json::value* value = request.if_contains(name);
  return value != nullptr && !value->is_null() && *value != json::value(false);
}

// Returns whether the request needs log-probabilities of the prompt, which the decode engine cannot report.
bool requests_prompt_logprobs(const json::object& request) {
  return is_set(request, "prompt_logprobs") || (is_set(request, "echo") && is_set(request, "logprobs"));
}

}  // namespace

std::optional<json::object> prefill_request(std::string_view path, std::string_view body) {
  const openai::Route* route = openai::find_route(path);
  if (!route || !route->generates()) return std::nullopt;
  std::optional<json::object> request = json_object(body);
  if (!request || request->empty() || has_several_prompts(*request) || request->contains(kParams))
    return std::nullopt;
  (*request)["stream"] = false;
  request->erase("stream_options");
  // Only the decode engine stores the response, so the prefill request must not.
  if (request->contains("store")) (*request)["store"] = false;
  json::object* limits = &*request;
  if (!route->limit_in.empty()) {
    json::value& inside = (*request)[route->limit_in];
    limits = inside.is_object() ? &inside.get_object() : &inside.emplace_object();
  }
  if (requests_prompt_logprobs(*request) || requests_prompt_logprobs(*limits)) return std::nullopt;
  (*limits)[route->limit] = 1;
  for (const char* limit : {"max_completion_tokens", "min_tokens", "n", "best_of"})
    if (limits->contains(limit)) (*limits)[limit] = 1;
  return request;
}

std::optional<std::string> prefill_body(std::string_view path, std::string_view body) {
  std::optional<json::object> request = prefill_request(path, body);
  if (!request) return std::nullopt;
  return prefill_body(*std::move(request));
}

std::string prefill_body(json::object prefill_request) {
  prefill_request[kParams] = {{"do_remote_decode", true},    {"do_remote_prefill", false},
                              {"remote_engine_id", nullptr}, {"remote_block_ids", nullptr},
                              {"remote_host", nullptr},      {"remote_port", nullptr}};
  return exact_json_text(prefill_request);
}

std::optional<std::string> kv_transfer_params(std::string_view answer) {
  const std::optional<json::object> reply = json_object(answer);
  const json::value* params = reply ? reply->if_contains(kParams) : nullptr;
  if (params == nullptr || !params->is_object()) return std::nullopt;
  return exact_json_text(*params);
}

std::string decode_body(std::string_view body, std::string_view params) {
  return with_field(body, kParams, params);
}

}  // namespace octavo::fleet
