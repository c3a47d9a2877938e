// Tenants of the router: keys, rates and maximum concurrent requests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace octavo::fleet {

struct TenantOptions {
  std::string name = {};
  std::vector<std::string> keys = {};
  double requests_per_second = 0;   // 0: any number
  std::int64_t burst = 1;           // requests that may come at once
  std::int64_t concurrent_max = 0;  // requests at a time; 0: any number
};

inline constexpr std::size_t kTenantsMax = 10'000;

// A file in YAML or JSON, strict:
//
//   tenants:
//   - {name: acme, keys: [k1, k2], requestsPerSecond: 10, burst: 20, maxConcurrentRequests: 8}
//
// Errors name the field, like "tenants[0].keys".
Result<std::vector<TenantOptions>> read_tenants_file(const std::string& path);

class Tenant;

// A request's slot among its tenant's requests, freed by the destructor.
class TenantShare {
 public:
  TenantShare() = default;  // of no tenant
  explicit TenantShare(Tenant& tenant);
  TenantShare(TenantShare&& other) noexcept;
  TenantShare& operator=(TenantShare&&) = delete;
  ~TenantShare();

 private:
  Tenant* tenant_ = nullptr;
};

// Safe from any thread.
class Tenant {
 public:
  explicit Tenant(TenantOptions options);

  // Whether one more request is admitted; if not, seconds until a retry makes sense, at least 1.
  struct Answer {
    TenantShare share = {};
    std::int64_t retry_after_s = 0;  // 0: it may
    std::string message = {};        // names the limit that was reached
  };
  Answer admit(std::int64_t now_us);

  const TenantOptions& options() const { return options_; }

 private:
  friend class TenantShare;
  friend class Tenants;
  void ended();

  const TenantOptions options_;
  mutable std::mutex mutex_;
  double tokens_;  // requests that may come at once now
  std::int64_t counted_us_ = 0;
  std::int64_t under_way_ = 0, admitted_ = 0, rate_limited_ = 0, concurrency_limited_ = 0;
};

class Tenants {
 public:
  explicit Tenants(const std::vector<TenantOptions>& options);

  // The tenant of a key, or null. `authorization`: "Bearer KEY".
  Tenant* find(std::string_view authorization);

  // octavo_route_tenant_* in Prometheus' text format.
  std::string metrics() const;

 private:
  Hash128 digest(std::string_view key) const;

  const std::uint64_t seed_;
  std::vector<std::unique_ptr<Tenant>> all_;
  std::map<Hash128, Tenant*> by_key_;  // by digest: the time of a look-up reveals nothing about the keys
};

}  // namespace octavo::fleet
