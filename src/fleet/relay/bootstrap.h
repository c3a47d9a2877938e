// SGLang's disaggregated prefill: the prefill and the decode engine get the same request at once, and meet by
// the fields that the proxy adds to it.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::fleet {

// Whether SGLang's engines divide the requests of this path.
bool is_divided(std::string_view path);

struct Bootstrap {
  std::string host = {};   // of the prefill engine
  int port = 0;            // of its bootstrap server; 0: none, null in the body
  std::uint64_t draw = 0;  // unpredictable bits: the room is new
};

// The body with bootstrap_host, bootstrap_port and bootstrap_room. If it has several prompts, each field is a
// list with one item per prompt. request: `body` as JSON. Errors: the client sent one of the fields.
Result<std::string> bootstrap_body(std::string_view body, const boost::json::object& request,
                                   const Bootstrap& bootstrap);

}  // namespace octavo::fleet
