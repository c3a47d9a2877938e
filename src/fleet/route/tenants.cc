#include "fleet/route/tenants.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "fleet/decide/parameters.h"
#include "fleet/observe/metrics_text.h"
#include "http/message.h"
#include "yaml/yaml.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

Result<TenantOptions> read_tenant(const json::value& entry, const std::string& where,
                                  std::set<std::string>& keys) {
  if (!entry.is_object()) return invalid(where, "must be an object");
  Parameters fields(entry.get_object(), where);
  TenantOptions tenant;
  fields.read("name", tenant.name);
  fields.read("requestsPerSecond", tenant.requests_per_second, 0.001, 1e6);
  tenant.burst = std::max<std::int64_t>(1, std::llround(std::ceil(tenant.requests_per_second)));
  fields.read("burst", tenant.burst, 1, 1'000'000);
  fields.read("maxConcurrentRequests", tenant.concurrent_max, 1, 1'000'000);
  const json::value* list = fields.get("keys");
  TRY_VOID(fields.done());
  if (tenant.name.empty()) return invalid(where + ".name", "must be a string");
  if (!list || !list->is_array() || list->get_array().empty())
    return invalid(where + ".keys", "must be a list with at least one key");
  for (const json::value& key : list->get_array()) {
    if (!key.is_string() || key.get_string().empty()) return invalid(where + ".keys", "must be a string");
    tenant.keys.emplace_back(key.get_string());
    if (!keys.insert(tenant.keys.back()).second)
      return invalid(where + ".keys", "contains the same key twice");
  }
  return tenant;
}

}  // namespace

Result<std::vector<TenantOptions>> read_tenants_file(const std::string& path) {
  TRY(const json::value file, read_yaml_file(path, "tenants"));
  if (!file.is_object())
    return invalid("tenants", "{} must contain an object whose field `tenants` is a list", path);
  Parameters fields(file.get_object(), "");
  const json::value* list = fields.get("tenants");
  TRY_VOID(fields.done());
  if (!list || !list->is_array() || list->get_array().size() > kTenantsMax)
    return invalid("tenants", "must be a list with at most {} entries", kTenantsMax);
  std::vector<TenantOptions> tenants;
  std::set<std::string> names, keys;
  for (const json::value& entry : list->get_array()) {
    const std::string where = fmt::format("tenants[{}]", tenants.size());
    TRY(TenantOptions tenant, read_tenant(entry, where, keys));
    if (!names.insert(tenant.name).second)
      return invalid(where + ".name", "the name {} occurs twice", tenant.name);
    tenants.push_back(std::move(tenant));
  }
  return tenants;
}

TenantShare::TenantShare(Tenant& tenant) : tenant_(&tenant) {}
TenantShare::TenantShare(TenantShare&& other) noexcept : tenant_(std::exchange(other.tenant_, nullptr)) {}
TenantShare::~TenantShare() {
  if (tenant_) tenant_->ended();
}

Tenant::Tenant(TenantOptions options)
    : options_(std::move(options)), tokens_(static_cast<double>(options_.burst)) {}

bool Tenant::is_full(Kind kind) const {
  const std::int64_t most = options_.concurrent_max;
  return most > 0 && under_way_ >= most - (kind == Kind::line ? most / 4 : 0);
}

double Tenant::tokens_missing(std::int64_t now, Kind kind) {
  const double rate = options_.requests_per_second;
  if (rate == 0) return 0;
  const double since_s = static_cast<double>(std::max<std::int64_t>(now - counted_us_, 0)) * 1e-6;
  tokens_ = std::min(static_cast<double>(options_.burst), tokens_ + since_s * rate);
  counted_us_ = now;
  const std::int64_t kept = kind == Kind::line ? options_.burst / 4 : 0;
  return std::max(0.0, 1 + static_cast<double>(kept) - tokens_);
}

bool Tenant::has_room_for_line(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  return !is_full(Kind::line) && tokens_missing(now, Kind::line) == 0;
}

Tenant::Answer Tenant::admit(std::int64_t now, Kind kind) {
  const std::lock_guard lock(mutex_);
  if (is_full(kind)) {
    ++concurrency_limited_;
    return {.retry_after_s = 1,
            .message = fmt::format("the tenant may have at most {} requests in flight: retry later",
                                   options_.concurrent_max)};
  }
  const double rate = options_.requests_per_second;
  if (const double missing = tokens_missing(now, kind); missing > 0) {
    ++rate_limited_;
    return {.retry_after_s = std::max<std::int64_t>(1, std::llround(std::ceil(missing / rate))),
            .message = fmt::format("the tenant may send at most {} requests per second: retry later", rate)};
  }
  if (rate > 0) --tokens_;
  ++admitted_;
  ++under_way_;
  return {.share = TenantShare(*this)};
}

void Tenant::ended() {
  const std::lock_guard lock(mutex_);
  --under_way_;
}

Tenants::Tenants(const std::vector<TenantOptions>& options) : seed_(secret_seed()) {
  for (const TenantOptions& each : options) {
    all_.push_back(std::make_unique<Tenant>(each));
    for (const std::string& key : each.keys) by_key_[digest(key)] = all_.back().get();
  }
}

Hash128 Tenants::digest(std::string_view key) const {
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(key)), seed_);
}

Tenant* Tenants::find(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!http::equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) return nullptr;
  const auto found = by_key_.find(digest(authorization.substr(kScheme.size())));
  return found != by_key_.end() ? found->second : nullptr;
}

std::string Tenants::metrics() const {
  if (all_.empty()) return "";
  std::string requests =
      "# HELP octavo_route_tenant_requests_total Requests of a tenant, by outcome at its limits.\n# TYPE "
      "octavo_route_tenant_requests_total counter\n";
  std::string active =
      "# HELP octavo_route_tenant_requests_active Requests of a tenant that are in flight.\n# TYPE "
      "octavo_route_tenant_requests_active gauge\n";
  for (const auto& tenant : all_) {
    const std::lock_guard lock(tenant->mutex_);
    const std::string name = escaped_label(tenant->options_.name);
    const auto count = [&](std::string_view outcome, std::int64_t value) {
      fmt::format_to(std::back_inserter(requests),
                     "octavo_route_tenant_requests_total{{tenant=\"{}\",outcome=\"{}\"}} {}\n", name, outcome,
                     value);
    };
    count("admitted", tenant->admitted_);
    count("rate_limited", tenant->rate_limited_);
    count("concurrency_limited", tenant->concurrency_limited_);
    fmt::format_to(std::back_inserter(active), "octavo_route_tenant_requests_active{{tenant=\"{}\"}} {}\n",
                   name, tenant->under_way_);
  }
  return requests + active;
}

}  // namespace octavo::fleet
