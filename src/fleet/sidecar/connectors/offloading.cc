// offloading: sends the request to both engines at the same time. The decode engine fetches the blocks from
// the prefill engine by an id (peer-to-peer tier of vLLM's OffloadingConnector).
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/exact_json.h"
#include "fleet/relay/disaggregation.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/two_legs.h"

namespace octavo::fleet {

namespace json = boost::json;

void run_offloading(const std::shared_ptr<TwoLegs>& legs, json::object prompt) {
  const std::string id = fmt::format("{:016x}", legs->draw());
  prompt["kv_transfer_params"] = json::object{{"remote_decoder", json::object{{"kv_request_id", id}}}};
  legs->prefill_meanwhile(exact_json_text(prompt));
  const json::object prefiller{{"kv_request_id", id},
                               {"remote_host", legs->prefiller().host},
                               {"remote_port", legs->options().p2p_port}};
  legs->decode(decode_body(legs->body(), json::serialize(json::object{{"remote_prefiller", prefiller}})));
}

}  // namespace octavo::fleet
