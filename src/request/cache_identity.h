// Determines which requests may share cached prefixes.
#pragma once

#include <string>

#include "base/hash.h"

namespace octavo {

// Only requests with equal identities share prefixes, for two reasons: keys and values depend on the adapter,
// and a tenant must not learn another tenant's prompts from the time to first token.
struct CacheIdentity {
  std::string adapter;  // name of the LoRA adapter; "": no adapter
  std::string tenant;   // name of the tenant; "": prefixes are shared by all tenants
  std::string salt;     // cache_salt of the request; "": no salt

  bool operator==(const CacheIdentity&) const = default;

  // Returns the hash that precedes a prompt's first block in its prefix keys; zero for the empty identity.
  Hash128 digest() const;
};

}  // namespace octavo
