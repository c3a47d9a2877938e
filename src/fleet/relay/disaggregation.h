// Request bodies for prefill and decode on two replicas, as in llm-d's sidecar and vLLM's proxies.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

// The body for the replica that computes the prompt: one token and no stream. nullopt where the request has
// not exactly one prompt to continue, or kv_transfer_params of its client.
std::optional<boost::json::object> first_leg(std::string_view path, std::string_view body);

// The same with kv_transfer_params of vLLM's NixlConnector: the replica keeps the prompt's KV blocks.
std::optional<std::string> prefill_body(std::string_view path, std::string_view body);
std::string prefill_body(boost::json::object first_leg);

// The kv_transfer_params of that replica's answer as JSON, if any.
std::optional<std::string> kv_transfer_params(std::string_view answer);

// For the replica that decodes: the body as it came, with the params. body: one that prefill_body() has
// taken.
std::string decode_body(std::string_view body, std::string_view params);

// Tokens of the prompt that the replica found in its cache, by the usage in its answer; 0 where it does not
// say.
std::int64_t cached_tokens(std::string_view answer);

}  // namespace octavo::fleet
