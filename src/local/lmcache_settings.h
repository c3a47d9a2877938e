// LMCache's settings outside --kv-transfer-config: the file in LMCACHE_CONFIG_FILE, and the variables
// LMCACHE_*.
#pragma once

#include <string>

#include "base/error.h"
#include "hub/settings.h"

namespace octavo {

// Returns kv_transfer_config with these settings, as lmcache.NAME, in each LMCacheConnectorV1. A setting of
// the flag has priority over a variable, and a variable over the file. Settings without an effect are
// logged. A text that is not a JSON object is returned unchanged. Errors: the file cannot be read.
Result<std::string> with_lmcache_settings(const std::string& kv_transfer_config,
                                          const hub::Environment& environment);

}  // namespace octavo
