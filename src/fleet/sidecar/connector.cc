#include "fleet/sidecar/connector.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

constexpr Connector kConnectors[] = {
    {"nixlv2", "the prompt first, then the answer with the kv_transfer_params of the prompt's reply",
     run_nixl},
    {"shared-storage", "the prompt first, unless the engine beside has enough of it in its cache",
     run_shared_storage},
    {"sglang", "both at once, with SGLang's bootstrap fields", run_sglang},
    {"mooncake", "both at once, with vLLM's MooncakeConnector's transfer_id", run_mooncake},
    {"offloading", "both at once, the answer fetches blocks from the prefiller's --p2p-connector-port",
     run_offloading},
};

}  // namespace

std::span<const Connector> connectors() { return kConnectors; }

const Connector* find_connector(std::string_view name) {
  const auto found = std::ranges::find(kConnectors, name, &Connector::name);
  return found != std::end(kConnectors) ? &*found : nullptr;
}

}  // namespace octavo::fleet
