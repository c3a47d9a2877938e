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
  double requests_per_second = 0;   // 0: no limit
  std::int64_t burst = 1;           // number of requests that may arrive at the same time
  std::int64_t concurrent_max = 0;  // maximum number of concurrent requests; 0: no limit
};

inline constexpr std::size_t kTenantsMax = 10'000;

// Reads a YAML or JSON file; unknown fields are errors:
//
//   tenants:
//   - {name: acme, keys: [k1, k2], requestsPerSecond: 10, burst: 20, maxConcurrentRequests: 8}
//
// Errors name the field, such as "tenants[0].keys".
Result<std::vector<TenantOptions>> read_tenants_file(const std::string& path);

class Tenant;

// One of its tenant's concurrent requests. The destructor frees it.
class TenantShare {
 public:
  TenantShare() = default;  // without a tenant
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

  // Requests of clients, and lines of the tenant's batches. Lines leave a quarter of both limits to requests.
  enum class Kind : std::uint8_t { request, line };
  // Whether one more request is admitted; if not, the time after which a retry can succeed.
  struct Answer {
    TenantShare share = {};
    std::int64_t retry_after_s = 0;  // at least 1; 0: the request is admitted
    std::string message = {};        // message with the limit that was reached
  };
  Answer admit(std::int64_t now_us, Kind kind = Kind::request);
  // Whether one more line would be admitted.
  bool has_room_for_line(std::int64_t now_us);

  const TenantOptions& options() const { return options_; }

 private:
  friend class TenantShare;
  friend class Tenants;
  void ended();
  bool is_full(Kind kind) const;                       // too many concurrent requests
  double tokens_missing(std::int64_t now, Kind kind);  // 0: the rate allows one more request

  const TenantOptions options_;
  mutable std::mutex mutex_;
  double tokens_;  // number of requests that may arrive now
  std::int64_t counted_us_ = 0;
  std::int64_t under_way_ = 0, admitted_ = 0, rate_limited_ = 0, concurrency_limited_ = 0;
};

class Tenants {
 public:
  explicit Tenants(const std::vector<TenantOptions>& options);

  // The tenant of a key; null: none. authorization: "Bearer KEY".
  Tenant* find(std::string_view authorization);
  const std::vector<std::unique_ptr<Tenant>>& all() const { return all_; }

  // octavo_route_tenant_* in Prometheus' text format.
  std::string metrics() const;

 private:
  Hash128 digest(std::string_view key) const;

  const std::uint64_t seed_;
  std::vector<std::unique_ptr<Tenant>> all_;
  std::map<Hash128, Tenant*> by_key_;  // by digest, so that the time of a look-up reveals nothing about the
                                       // keys
};

}  // namespace octavo::fleet
