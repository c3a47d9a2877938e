// SGLang's disaggregated prefill: the prefill and the decode engine get the same request at the same time.
// The fields that the proxy adds let them find each other.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::fleet {

// Whether SGLang's engines support disaggregation for this path.
bool is_divided(std::string_view path);

struct Bootstrap {
  std::string host = {};   // host of the prefill engine
  int port = 0;            // port of the prefill engine's bootstrap server; 0: none, null in the body
  std::uint64_t draw = 0;  // random bits, for a unique bootstrap_room
};

// Adds bootstrap_host, bootstrap_port and bootstrap_room to the body. If it has several prompts, each field
// is a list with an item for each prompt. request: `body` as JSON. Errors: the client has sent one of the
// fields.
Result<std::string> bootstrap_body(std::string_view body, const boost::json::object& request,
                                   const Bootstrap& bootstrap);

}  // namespace octavo::fleet
