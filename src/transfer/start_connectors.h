// Starts the KV connectors that --kv-transfer-config selects.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "transfer/kv_connector.h"
#include "transfer/kv_transfer_options.h"

namespace octavo {

// Returns the connectors in the order in which a prompt is looked up: the tier, other engines, other
// connectors. Returns the errors of TierConnector::open and PeerConnector::start.
Result<std::vector<std::unique_ptr<KvConnector>>> start_connectors(const KvTransferOptions& options,
                                                                   const KvConnectorSite& site);

}  // namespace octavo
