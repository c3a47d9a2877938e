// Writes the ext_proc responses that send a request to the chosen endpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/balance/choice.h"
#include "http/message.h"

namespace envoy::service::ext_proc::v3 {
class HeaderMutation;
class ProcessingResponse;
}  // namespace envoy::service::ext_proc::v3

namespace octavo::fleet {

namespace ext_proc = envoy::service::ext_proc::v3;

struct ChoiceAnswer {
  const Choice& choice;
  const http::Request& request;
  int primary_port = 0;  // port that the gateway sends all requests to; 0: each endpoint's own port
  bool emit_scores = false;
  bool buffered = false;  // send the choice in the response to the body instead of to the headers
  bool sets_length = false;
  bool changes_body = false;
  // the picker has decompressed the request's body, so Content-Encoding must be removed
  bool expands_body = false;
  std::string traceparent = {};      // trace context for the endpoint; "": keep the request's trace context
  std::string_view request_id = {};  // request id to add; "": the request has an id
};

void write_choice(const ChoiceAnswer& answer_of, ext_proc::ProcessingResponse& answer);
// Adds the body in pieces, one for each response. The last piece ends the stream, unless trailers follow.
void add_request_body(std::string_view body, bool has_trailers,
                      std::vector<ext_proc::ProcessingResponse>& answers);

// Returns llm-d's name for how the work is divided between endpoints.
std::string_view split_of(const Choice& choice);

// Sets a header. Replaces a value that the client has sent.
void set_header(ext_proc::HeaderMutation& mutation, std::string_view name, std::string_view value);

std::string random_uuid(std::uint64_t high, std::uint64_t low);

}  // namespace octavo::fleet
