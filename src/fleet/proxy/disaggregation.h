// Prefill and decode on two replicas: what the body of a request becomes for each, as llm-d's sidecar and
// vLLM's proxies have it (kv_transfer_params of vLLM's NixlConnector).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

// For the replica that computes the prompt: one token, no stream, and its KV blocks are kept. Nothing: the
// request is none of one prompt to continue, or its client sees to kv_transfer_params itself.
std::optional<std::string> prefill_body(std::string_view path, std::string_view body);

// The kv_transfer_params of that replica's answer, as JSON. Nothing: there are none.
std::optional<std::string> kv_transfer_params(std::string_view answer);

// For the replica that decodes: the body as it came, with the params. body: one that prefill_body() has
// taken.
std::string decode_body(std::string_view body, std::string_view params);

}  // namespace octavo::fleet
