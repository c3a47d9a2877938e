// Costs of requests by tenant: metrics, the access log, and money.
#pragma once

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "request/answer_cost.h"
#include "request/engine_stats.h"

namespace octavo {

// Prices of units.
struct Prices {
  std::string currency;
  std::array<double, kCostUnits> per_unit{};  // index: CostUnit

  double money(const AnswerCost& cost) const;
};
// Reads {"currency": "EUR", "prices": {"output_tokens": 0.000002}}. Errors: unknown units, prices below 0.
Result<Prices> read_prices(const boost::json::value& file);
// The same from a YAML or JSON file.
Result<Prices> read_prices_file(const std::string& path);

// {"output_tokens": 3, ..}, without units that are 0; with prices also "money" and "currency".
boost::json::object cost_json(const AnswerCost& cost, const Prices* prices);

// Request header with the tenant's name, which `octavo route` sends to workers.
inline constexpr std::string_view kTenantHeader = "X-Octavo-Tenant";
// Label of clients without a key and without a tenant's name.
inline constexpr std::string_view kAnonymous = "anonymous";

// Label of a tenant that a key, or another value that nobody should read, identifies: "tenant-" and the
// first 12 digits of batches::owner_of.
std::string hashed_tenant(std::string_view client);
// At most 64 printable ASCII characters of a tenant's name; others become "_".
std::string tenant_label(std::string_view name);

// Costs by tenant. Safe from any thread.
class TenantCosts {
 public:
  // Number of tenants with separate values. The cost of more tenants is added to kOthers.
  static constexpr std::size_t kTenantsMax = 1000;
  static constexpr std::string_view kOthers = "other";

  explicit TenantCosts(std::string prefix) : prefix_(std::move(prefix)) {}

  // requests: number of requests that end with this cost.
  void add(std::string_view tenant, const AnswerCost& cost, int requests);
  // Returns the counters PREFIX_tenant_* in Prometheus' text format, with the label `tenant`.
  std::string metrics(const std::optional<Prices>& prices) const;

 private:
  struct Sum {
    AnswerCost cost;
    std::int64_t requests = 0;
  };

  const std::string prefix_;  // "octavo" or "octavo_route"
  mutable std::mutex mutex_;
  std::map<std::string, Sum, std::less<>> tenants_;
};

struct AccountOptions {
  std::string access_log{};  // file; "": none
  std::optional<Prices> prices{};
};

// A request and its end, for the access log.
struct AccessEntry {
  std::string_view id, tenant, path, model;
  std::string_view finish{};  // finish reason of the first answer; "": unknown
  int status = 0;             // HTTP status; 0: unknown
  std::int64_t prompt_tokens = 0;
  int answers = 0;     // 0: unknown
  double seconds = 0;  // from the arrival to the end
  AnswerCost cost;
};

class Accounts {
 public:
  // prefix: of the names of metrics, "octavo" or "octavo_route".
  explicit Accounts(AccountOptions options, std::string prefix = "octavo")
      : options_(std::move(options)), tenants_(std::move(prefix)) {}
  ~Accounts();

  // Opens the access log. Errors: the file cannot be written.
  Result<> open();

  const Prices* prices() const { return options_.prices ? &*options_.prices : nullptr; }
  void charge(std::string_view tenant, const AnswerCost& cost, int requests) {
    tenants_.add(tenant, cost, requests);
  }
  void log(const AccessEntry& entry) const;
  std::string metrics() const { return tenants_.metrics(options_.prices); }

 private:
  const AccountOptions options_;
  TenantCosts tenants_;
  int log_ = -1;  // file descriptor
};

// Returns the compute time of each engine in Prometheus' text format.
std::string compute_metrics(std::span<const EngineStats> engines);

}  // namespace octavo
