// Reads vLLM's gRPC calls VllmEngine/Generate and VllmEngine/Embed: the prompts of requests, and the token
// counts of responses.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fleet/view/route_request.h"

namespace octavo::fleet {

bool is_vllm_grpc(std::string_view path);

// Fills in the prompt, the maximum number of output tokens and the streaming flag. `body` is one gRPC
// message with its prefix of 5 bytes. Returns invalid_argument if the message is invalid.
Result<> read_vllm_grpc(std::string_view body, RouteRequest& route);

// The token counts of a response, whose bytes arrive in pieces of any size. Compressed messages, messages
// above 4 MiB and invalid messages are not counted.
class GrpcAnswer {
 public:
  // `path` must be a path of is_vllm_grpc().
  explicit GrpcAnswer(std::string_view path);

  // Returns the number of output tokens in the messages that end in `bytes`.
  std::int64_t read(std::string_view bytes);
  // Returns the counts as OpenAI's usage object. Returns nullopt if no message had a number of prompt
  // tokens.
  std::optional<boost::json::object> usage() const;

 private:
  std::int64_t read_message(std::string_view bytes);
  std::int64_t read_generated(std::string_view bytes);

  bool embeds_;
  std::string unread_;                // bytes of an incomplete message, with its prefix
  std::uint64_t skipped_ = 0;         // remaining bytes of a message that is not counted
  std::set<std::uint32_t> streamed_;  // indexes of the outputs whose tokens arrive in several messages
  std::int64_t prompt_tokens_ = -1, cached_tokens_ = 0, output_tokens_ = 0;
};

}  // namespace octavo::fleet
