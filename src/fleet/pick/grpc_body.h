// Reads vLLM's gRPC requests: VllmEngine/Generate and VllmEngine/Embed.
#pragma once

#include <string_view>

#include "base/error.h"
#include "fleet/view/route_request.h"

namespace octavo::fleet {

bool is_vllm_grpc(std::string_view path);

// Fills the prompt, and the fields about the answer. body: one gRPC message with its prefix of 5 bytes.
// Errors: invalid_argument.
Result<> read_vllm_grpc(std::string_view body, RouteRequest& route);

}  // namespace octavo::fleet
