// Reads LMCache's settings outside of --kv-transfer-config: the file LMCACHE_CONFIG_FILE, and the variables
// LMCACHE_*.
#pragma once

#include <string>

#include "base/error.h"
#include "hub/settings.h"

namespace octavo {

// Adds these settings, as lmcache.NAME, to each LMCacheConnectorV1 in kv_transfer_config. Settings in the
// flag have priority over variables, and variables over the file. Settings without effect are logged. Text
// that is not a JSON object is returned unchanged. Returns an error if the file cannot be read.
Result<std::string> with_lmcache_settings(const std::string& kv_transfer_config,
                                          const hub::Environment& environment);

}  // namespace octavo
