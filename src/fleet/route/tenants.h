// Tenants of the router, with their API keys, request rates and limits of concurrent requests.
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
  std::int64_t burst = 1;           // requests that may arrive at the same time, even if they exceed the rate
  std::int64_t concurrent_max = 0;  // 0: no limit
};

inline constexpr std::size_t kTenantsMax = 10'000;

// Reads a YAML or JSON file:
//
//   tenants:
//   - {name: acme, keys: [k1, k2], requestsPerSecond: 10, burst: 20, maxConcurrentRequests: 8}
//
// Returns an error on the field, such as "tenants[0].keys", also if the field is unknown.
Result<std::vector<TenantOptions>> read_tenants_file(const std::string& path);

class Tenant;

// One of the tenant's concurrent requests, counted until this object is destroyed.
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

  // A client's request, or a line of a batch file. Lines leave a quarter of `burst` and of concurrent_max to
  // requests.
  enum class Kind : std::uint8_t { request, line };
  // Result of admit(): a share if the request is admitted, otherwise the time until a retry may succeed.
  struct Answer {
    TenantShare share = {};
    // time until a retry may succeed, at least 1 s; 0: the request is admitted
    std::int64_t retry_after_s = 0;
    std::string message = {};        // names the limit that is reached
  };
  Answer admit(std::int64_t now_us, Kind kind = Kind::request);
  bool has_room_for_line(std::int64_t now_us);

  const TenantOptions& options() const { return options_; }

 private:
  friend class TenantShare;
  friend class Tenants;
  void ended();
  bool is_full(Kind kind) const;
  // Returns how many requests the token bucket lacks for one more request. Returns 0 if the bucket
  // suffices.
  double tokens_missing(std::int64_t now, Kind kind);

  const TenantOptions options_;
  mutable std::mutex mutex_;
  double tokens_;  // requests in the token bucket
  std::int64_t counted_us_ = 0;
  std::int64_t under_way_ = 0, admitted_ = 0, rate_limited_ = 0, concurrency_limited_ = 0;
};

class Tenants {
 public:
  explicit Tenants(const std::vector<TenantOptions>& options);

  // `authorization` is "Bearer KEY". Returns null if no tenant has the key.
  Tenant* find(std::string_view authorization);
  const std::vector<std::unique_ptr<Tenant>>& all() const { return all_; }

  std::string metrics() const;

 private:
  Hash128 digest(std::string_view key) const;

  const std::uint64_t seed_;
  std::vector<std::unique_ptr<Tenant>> all_;
  // Tenants by the digest of their keys, so that the time of a lookup does not reveal anything about the
  // keys.
  std::map<Hash128, Tenant*> by_key_;
};

}  // namespace octavo::fleet
