// Reads the prompts of vLLM's gRPC requests VllmEngine/Generate and VllmEngine/Embed.
#pragma once

#include <string_view>

#include "base/error.h"
#include "fleet/view/route_request.h"

namespace octavo::fleet {

bool is_vllm_grpc(std::string_view path);

// Fills in the prompt, the maximum number of output tokens and the streaming flag. `body` is one gRPC
// message with its prefix of 5 bytes. Returns invalid_argument if the message is invalid.
Result<> read_vllm_grpc(std::string_view body, RouteRequest& route);

}  // namespace octavo::fleet
