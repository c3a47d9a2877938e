// LMCache's settings outside of --kv-transfer-config: the file that LMCACHE_CONFIG_FILE names, and LMCACHE_*.
#pragma once

#include <string>

#include "base/error.h"
#include "hub/settings.h"

namespace octavo {

// The same --kv-transfer-config, where each LMCacheConnectorV1 has these settings as lmcache.NAME. The flag
// wins over the variables, and these over the file. Logs settings that have no effect. Errors: the file
// cannot be read; text that is no JSON object passes unchanged.
Result<std::string> with_lmcache_settings(const std::string& kv_transfer_config,
                                          const hub::Environment& environment);

}  // namespace octavo
