// Request bodies for a prefill and a decode replica, as in llm-d's sidecar and vLLM's proxies.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Returns the body for the prefill replica: one output token, one answer, no stream. Returns nullopt if the
// request does not have exactly one prompt, needs log-probabilities of the prompt, or has kv_transfer_params.
std::optional<boost::json::object> first_leg(std::string_view path, std::string_view body);

// Returns the body for the prefill replica with kv_transfer_params of vLLM's NixlConnector: the replica keeps
// the prompt's KV blocks.
std::optional<std::string> prefill_body(std::string_view path, std::string_view body);
std::string prefill_body(boost::json::object first_leg);

// Returns the kv_transfer_params in the prefill replica's answer, as JSON; nullopt if they are missing.
std::optional<std::string> kv_transfer_params(std::string_view answer);

// Returns the body for the decode replica: the client's body with these params. prefill_body() must have
// accepted the body.
std::string decode_body(std::string_view body, std::string_view params);

// Returns the number of prompt tokens that the replica found in its cache, from the usage in its answer; 0 if
// it is missing.
std::int64_t cached_tokens(std::string_view answer);

}  // namespace octavo::fleet
