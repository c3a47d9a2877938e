#include "fleet/sidecar/connector.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

constexpr Connector kConnectors[] = {
    {"nixlv2", "sends the prompt first, then the request with the kv_transfer_params of the prompt's reply",
     run_nixl},
    {"shared-storage", "sends the prompt first, unless the decode engine has most of it in its cache",
     run_shared_storage},
    {"sglang", "sends prompt and request at the same time, with SGLang's bootstrap fields", run_sglang},
    {"mooncake",
     "sends prompt and request at the same time, with the transfer_id of vLLM's MooncakeConnector",
     run_mooncake},
    {"offloading",
     "sends prompt and request at the same time (the decode engine fetches blocks from the prefill engine's "
     "--p2p-connector-port)",
     run_offloading},
};

}  // namespace

std::span<const Connector> connectors() { return kConnectors; }

const Connector* find_connector(std::string_view name) {
  const auto found = std::ranges::find(kConnectors, name, &Connector::name);
  return found != std::end(kConnectors) ? &*found : nullptr;
}

}  // namespace octavo::fleet
