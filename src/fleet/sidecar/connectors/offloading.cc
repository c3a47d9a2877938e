// offloading: sends the request to both engines at the same time. The decode engine fetches the blocks from
// the prefill engine by an id (peer-to-peer tier of vLLM's OffloadingConnector).
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/exact_json.h"
#include "fleet/relay/disaggregation.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/split_request.h"

namespace octavo::fleet {

namespace json = boost::json;

void run_offloading(const std::shared_ptr<SplitRequest>& split, json::object prompt) {
  const std::string id = fmt::format("{:016x}", split->draw());
  prompt["kv_transfer_params"] = json::object{{"remote_decoder", json::object{{"kv_request_id", id}}}};
  split->prefill_meanwhile(exact_json_text(prompt));
  const json::object prefiller{{"kv_request_id", id},
                               {"remote_host", split->prefiller().host},
                               {"remote_port", split->options().p2p_port}};
  split->decode(decode_body(split->body(), json::serialize(json::object{{"remote_prefiller", prefiller}})));
}

}  // namespace octavo::fleet
