// Tenants of the router: keys, rates and limits of concurrent requests.
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
  std::int64_t burst = 1;           // maximum number of requests at the same time
  std::int64_t concurrent_max = 0;  // maximum number of concurrent requests; 0: no limit
};

inline constexpr std::size_t kTenantsMax = 10'000;

// Reads a YAML or JSON file. Unknown fields are errors.
//
//   tenants:
//   - {name: acme, keys: [k1, k2], requestsPerSecond: 10, burst: 20, maxConcurrentRequests: 8}
//
// Errors name the field, such as "tenants[0].keys".
Result<std::vector<TenantOptions>> read_tenants_file(const std::string& path);

class Tenant;

// One of the tenant's concurrent requests, until the destructor.
class TenantShare {
 public:
  TenantShare() = default;
  explicit TenantShare(Tenant& tenant);
  TenantShare(TenantShare&& other) noexcept;
  TenantShare& operator=(TenantShare&&) = delete;
  ~TenantShare();

 private:
  Tenant* tenant_ = nullptr;
};

// Thread-safe.
class Tenant {
 public:
  explicit Tenant(TenantOptions options);

  // A client's request, or a line of a batch. Lines leave a quarter of both limits to requests.
  enum class Kind : std::uint8_t { request, line };
  // Whether one more request is admitted; otherwise the time after which a retry may succeed.
  struct Answer {
    TenantShare share = {};
    std::int64_t retry_after_s = 0;  // at least 1; 0: the request is admitted
    std::string message = {};        // names the reached limit
  };
  Answer admit(std::int64_t now_us, Kind kind = Kind::request);
  // Returns whether one more line would be admitted.
  bool has_room_for_line(std::int64_t now_us);

  const TenantOptions& options() const { return options_; }

 private:
  friend class TenantShare;
  friend class Tenants;
  void ended();
  bool is_full(Kind kind) const;  // the limit of concurrent requests is reached
  // requests that the token bucket lacks; 0: one more is allowed
  double tokens_missing(std::int64_t now, Kind kind);

  const TenantOptions options_;
  mutable std::mutex mutex_;
  double tokens_;  // requests that the rate allows now (token bucket)
  std::int64_t counted_us_ = 0;
  std::int64_t under_way_ = 0, admitted_ = 0, rate_limited_ = 0, concurrency_limited_ = 0;
};

class Tenants {
 public:
  explicit Tenants(const std::vector<TenantOptions>& options);

  // Returns the tenant of a key; null if none exists. authorization: "Bearer KEY".
  Tenant* find(std::string_view authorization);
  const std::vector<std::unique_ptr<Tenant>>& all() const { return all_; }

  // Returns octavo_route_tenant_* as Prometheus text.
  std::string metrics() const;

 private:
  Hash128 digest(std::string_view key) const;

  const std::uint64_t seed_;
  std::vector<std::unique_ptr<Tenant>> all_;
  // by digest, so that the time of a lookup reveals nothing about the keys
  std::map<Hash128, Tenant*> by_key_;
};

}  // namespace octavo::fleet
