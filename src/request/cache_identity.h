// Determines which requests may share cached prefixes.
#pragma once

#include <string>

#include "base/hash.h"

namespace octavo {

// Only requests with equal identity share prefixes, for two reasons. Keys and values depend on the
// adapter. And a tenant must not learn another tenant's prompts from the time to first token.
struct CacheIdentity {
  std::string adapter;  // name of the LoRA adapter; "": none
  std::string tenant;   // "": shared by all tenants
  std::string salt;     // cache_salt of the request; "": none

  bool operator==(const CacheIdentity&) const = default;

  // Hash that precedes a prompt's first block in its prefix keys; zero for the empty identity.
  Hash128 digest() const;
};

}  // namespace octavo
