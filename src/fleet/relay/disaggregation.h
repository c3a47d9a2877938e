// Writes the request bodies for disaggregated prefill: the prefill request and the decode request, as in
// llm-d's sidecar and vLLM's proxies.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Returns the body of the prefill request, with one output token, one choice and no stream. Returns nullopt
// if the request does not have exactly one prompt, needs log-probabilities of the prompt, or already has
// kv_transfer_params.
std::optional<boost::json::object> prefill_request(std::string_view path, std::string_view body);

// Returns the body of the prefill request with kv_transfer_params for vLLM's NixlConnector. They let the
// prefill engine keep the prompt's KV blocks until the decode engine has fetched them.
std::optional<std::string> prefill_body(std::string_view path, std::string_view body);
std::string prefill_body(boost::json::object prefill_request);

// Returns JSON, or nullopt if the response has no kv_transfer_params.
std::optional<std::string> kv_transfer_params(std::string_view answer);

// Returns the body of the decode request: the client's body with these kv_transfer_params. prefill_body()
// must have accepted the client's body.
std::string decode_body(std::string_view body, std::string_view params);

}  // namespace octavo::fleet
