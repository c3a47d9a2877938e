#include "fleet/proxy/disaggregation.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::string_view kParams = "kv_transfer_params";

std::optional<json::object> object_of(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

// Several texts, or several lists of tokens.
bool has_several_prompts(const json::object& request) {
  const json::value* prompt = request.if_contains("prompt");
  if (prompt == nullptr || !prompt->is_array()) return false;
  const json::array& all = prompt->get_array();
  return all.size() > 1 && !all.front().is_number();
}

}  // namespace

std::optional<std::string> prefill_body(std::string_view path, std::string_view body) {
  if (path != "/v1/chat/completions" && path != "/v1/completions") return std::nullopt;
  std::optional<json::object> request = object_of(body);
  if (!request || request->empty() || has_several_prompts(*request)) return std::nullopt;
  if (const json::value* own = request->if_contains(kParams); own != nullptr) return std::nullopt;
  (*request)[kParams] = {{"do_remote_decode", true},    {"do_remote_prefill", false},
                         {"remote_engine_id", nullptr}, {"remote_block_ids", nullptr},
                         {"remote_host", nullptr},      {"remote_port", nullptr}};
  (*request)["stream"] = false;
  request->erase("stream_options");
  (*request)["max_tokens"] = 1;
  for (const char* limit : {"max_completion_tokens", "min_tokens"})
    if (request->contains(limit)) (*request)[limit] = 1;
  return json::serialize(*request);
}

std::optional<std::string> kv_transfer_params(std::string_view answer) {
  const std::optional<json::object> reply = object_of(answer);
  const json::value* params = reply ? reply->if_contains(kParams) : nullptr;
  if (params == nullptr || !params->is_object()) return std::nullopt;
  return json::serialize(*params);
}

std::string decode_body(std::string_view body, std::string_view params) {
  const std::size_t behind = body.find('{') + 1;
  std::string out(body.substr(0, behind));
  out.append("\"").append(kParams).append("\":").append(params).append(",");
  return out.append(body.substr(behind));
}

}  // namespace octavo::fleet
