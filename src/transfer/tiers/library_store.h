// Loads a KV store from a shared library that implements octavo_kv_store.h (kv_connector_module_path in
// --kv-transfer-config).
#pragma once

#include <string>
#include <string_view>

#include "transfer/tiers/store_client.h"

namespace octavo {

std::string library_url(std::string_view path, std::string_view config);
bool is_library_url(std::string_view text);

// Returns invalid_argument if the library cannot be loaded or has another version of the interface.
Result<ConnectStore> library_store_at(std::string_view url);

}  // namespace octavo
