// SGLang's disaggregated prefill: the prefill and the decode engine receive the same request at the same
// time. The proxy adds bootstrap fields, with which the decode engine finds the prefill engine.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::fleet {

bool is_divided(std::string_view path);

struct Bootstrap {
  std::string host = {};
  int port = 0;            // bootstrap port of the prefill engine; 0: unknown, sent as null
  std::uint64_t draw = 0;  // random bits that make bootstrap_room unique
};

// Returns the body with bootstrap_host, bootstrap_port and bootstrap_room added. If the body has several
// prompts, each field is a list with one item for each prompt. `request` is the parsed body. Returns an
// error if the client has sent one of the fields.
Result<std::string> bootstrap_body(std::string_view body, const boost::json::object& request,
                                   const Bootstrap& bootstrap);

}  // namespace octavo::fleet
