// Makes the ext_proc answer with the picked endpoint.
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
  int primary_port = 0;  // port to which the gateway sends all requests; 0: the port of the endpoint
  bool emit_scores = false;
  bool buffered = false;             // answer the body message instead of the header message
  bool says_length = false;          // set the length of the body
  bool changes_body = false;         // the picker has changed the request's body
  bool expands_body = false;         // the picker has removed the body's Content-Encoding
  std::string traceparent = {};      // trace context for the endpoint; "": keep that of the request
  std::string_view request_id = {};  // request id to add; "": the request has one
};

void write_choice(const ChoiceAnswer& told, ext_proc::ProcessingResponse& answer);

// Returns how the work is divided between endpoints, in llm-d's terms.
std::string_view split_of(const Choice& choice);

// Sets a header, and replaces the client's value.
void set_header(ext_proc::HeaderMutation& mutation, std::string_view name, std::string_view value);

std::string random_uuid(std::uint64_t high, std::uint64_t low);

}  // namespace octavo::fleet
