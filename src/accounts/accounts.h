// Adds up the costs of requests by tenant, and reports them in metrics, in the access log and as money.
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

#include "accounts/unread_costs.h"
#include "base/error.h"
#include "request/answer_cost.h"
#include "request/engine_stats.h"

namespace octavo {

// Price of each cost unit, from the operator's price file.
struct Prices {
  std::string currency;
  std::array<double, kCostUnits> per_unit{};  // index: CostUnit

  double money(const AnswerCost& cost) const;
};
// Reads {"currency": "EUR", "prices": {"output_tokens": 0.000002}}. Returns an error for unknown units and
// negative prices.
Result<Prices> read_prices(const boost::json::value& file);
Result<Prices> read_prices_file(const std::string& path);

// Returns {"output_tokens": 3, ..} without the units that are 0. If `prices` is not null, adds "money" and
// "currency".
boost::json::object cost_json(const AnswerCost& cost, const Prices* prices);

// Request header with the tenant's name. `octavo route` adds this header when it forwards a request to a
// worker.
inline constexpr std::string_view kTenantHeader = "X-Octavo-Tenant";
// Tenant of clients that send neither an API key nor a tenant's name.
inline constexpr std::string_view kAnonymous = "anonymous";

// Returns a tenant label that does not reveal the client's API key: "tenant-" and the first 12 digits of
// batches::owner_of(client).
std::string hashed_tenant(std::string_view client);
// Returns at most 64 characters of a tenant's name. Replaces all characters except printable ASCII by "_".
std::string tenant_label(std::string_view name);

// Costs by tenant. Any thread may call the functions.
class TenantCosts {
 public:
  // Maximum number of tenants with separate sums. The costs of all further tenants are added to kOthers.
  static constexpr std::size_t kTenantsMax = 1000;
  static constexpr std::string_view kOthers = "other";

  explicit TenantCosts(std::string prefix) : prefix_(std::move(prefix)) {}

  // requests: 1 if the request ends with this cost, 0 if it continues.
  void add(std::string_view tenant, const AnswerCost& cost, int requests);
  // Returns the counters PREFIX_tenant_* with the label `tenant`, in Prometheus' text format.
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
  std::string access_log{};  // file name; "": no access log
  std::optional<Prices> prices{};
};

// A finished request, for the access log.
struct AccessEntry {
  std::string_view id, tenant, path, model;
  std::string_view finish{};  // finish reason of the first answer; "": unknown
  int status = 0;             // HTTP status; 0: unknown
  std::int64_t prompt_tokens = 0;
  int answers = 0;     // 0: unknown
  double seconds = 0;  // seconds from the arrival to the end of the request
  AnswerCost cost;
};

class Accounts {
 public:
  // `prefix` is the beginning of the metrics' names, "octavo" or "octavo_route".
  explicit Accounts(AccountOptions options, std::string prefix = "octavo")
      : options_(std::move(options)), tenants_(std::move(prefix)) {}
  ~Accounts();

  // Opens the access log. Returns an error if the file cannot be written.
  Result<> open();

  const Prices* prices() const { return options_.prices ? &*options_.prices : nullptr; }
  void charge(std::string_view tenant, const AnswerCost& cost, int requests) {
    tenants_.add(tenant, cost, requests);
  }
  void log(const AccessEntry& entry) const;
  std::string metrics() const { return tenants_.metrics(options_.prices); }

  UnreadCosts unread;

 private:
  const AccountOptions options_;
  TenantCosts tenants_;
  int log_ = -1;  // file descriptor of the access log; -1: not open
};

// Returns the counters of each engine's compute time, in Prometheus' text format. `model_name` is escaped.
std::string compute_metrics(std::span<const EngineStats> engines, std::string_view model_name);

}  // namespace octavo
