// The identity that decides which requests may share cached prefixes.
#pragma once

#include <string>

#include "base/hash.h"

namespace octavo {

// Only requests with equal identities share prefixes, for two reasons: keys and values depend on the adapter,
// and a tenant must not learn another tenant's prompts from the time to first token.
struct CacheIdentity {
  std::string adapter;  // name of the LoRA adapter; "": no adapter
  std::string tenant;   // name of the tenant; "": all tenants share prefixes
  std::string salt;

  bool operator==(const CacheIdentity&) const = default;

  // Returns the hash that PrefixHasher puts before a prompt's first block. It is zero for the empty
  // identity.
  Hash128 digest() const;
};

}  // namespace octavo
