// Makes the answer that reports a choice to the gateway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
  int primary_port = 0;  // port to which the gateway sends all requests; 0: the endpoint's own port
  bool emit_scores = false;
  bool buffered = false;             // answers the body message instead of the headers
  bool says_length = false;          // sets the length of the body
  bool changes_body = false;         // the request's body differs from the client's
  bool expands_body = false;         // the body has no Content-Encoding any more
  std::string traceparent = {};      // trace context for the endpoint; "": the request's own
  std::string_view request_id = {};  // id to add; "": the request already has one
};

void write_choice(const ChoiceAnswer& told, ext_proc::ProcessingResponse& answer);

// How the request's work is divided, in llm-d's terms.
std::string_view split_of(const Choice& choice);

// Sets a header; replaces a header of this name from the client.
void set_header(ext_proc::HeaderMutation& mutation, std::string_view name, std::string_view value);

std::string random_uuid(std::uint64_t high, std::uint64_t low);

}  // namespace octavo::fleet
