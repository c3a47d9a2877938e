// The answer that reports a choice to the gateway.
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
  int primary_port = 0;  // where the gateway sends all requests to; 0: as picked
  bool emit_scores = false;
  bool buffered = false;             // answers the body, not the headers
  bool says_length = false;          // of the body
  bool changes_body = false;         // the request's body is not as the client sent it
  std::string_view request_id = {};  // "": the request has one
};

void write_choice(const ChoiceAnswer& told, ext_proc::ProcessingResponse& answer);

// How the request's work is split, in llm-d's words.
std::string_view split_of(const Choice& choice);

// Overwrites what the client may have sent under that name.
void set_header(ext_proc::HeaderMutation& mutation, std::string_view name, std::string_view value);

std::string random_uuid(std::uint64_t high, std::uint64_t low);

}  // namespace octavo::fleet
