// A store in a shared library (octavo_kv_store.h) that is loaded at run time.
#pragma once

#include <string>
#include <string_view>

#include "transfer/tiers/store_client.h"

namespace octavo {

std::string library_url(std::string_view path, std::string_view config);
bool is_library_url(std::string_view text);

// Loads the library. Returns invalid_argument if it cannot be loaded, or if its interface has another
// version.
Result<ConnectStore> library_store_at(std::string_view url);

}  // namespace octavo
