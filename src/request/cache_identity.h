// Whose cached prefixes a request may share.
#pragma once

#include <string>

#include "base/hash.h"

namespace octavo {

// Prefixes are shared among equal identities only: keys and values depend on the adapter, and a tenant must
// not learn another tenant's prompts from the time to first token.
struct CacheIdentity {
  std::string adapter;  // "": the model alone
  std::string tenant;   // "": shared by all
  std::string salt;     // the caller's own choice; "": none

  bool operator==(const CacheIdentity&) const = default;

  // Precedes a prompt's first block in its prefix keys; zero for the empty identity.
  Hash128 digest() const;
};

}  // namespace octavo
