// Reads and writes a worker's description, which is the value of its key in etcd, and the body of POST
// /workers:
//
//   {"url": "http://10.0.0.1:8000", "role": "prefill" | "decode", "models": ["name"],
//    "kv_events": "tcp://10.0.0.1:5557,tcp://10.0.0.1:5558", "block_size": 16, "ranks": 2,
//    "bootstrap_port": 8998}
//
// Only `url` is required. All ranks have the same URL. Rank r has the event ports of rank 0 plus r.
// `bootstrap_port` is for prefill engines with SGLang's KV transfer.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "base/error.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Reads a record, and ignores unknown fields. Returns invalid_argument on the invalid field.
Result<Endpoint> read_worker(const boost::json::object& record);
// Reads a record in JSON, or a URL.
Result<Endpoint> read_worker(std::string_view text);

boost::json::object write_worker(const Endpoint& worker);

// Replaces each host "*" by `host`.
Endpoint at_host(Endpoint worker, std::string_view host);

}  // namespace octavo::fleet
