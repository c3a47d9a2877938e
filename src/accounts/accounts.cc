#include "accounts/accounts.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/hash.h"
#include "openai/request_fields.h"
#include "request/prometheus_text.h"
#include "yaml/yaml.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::size_t kLabelBytesMax = 64;
constexpr std::size_t kCurrencyBytesMax = 16;

}  // namespace

double Prices::money(const AnswerCost& cost) const {
  double sum = 0;
  for (std::size_t i = 0; i < kCostUnits; ++i) sum += per_unit[i] * static_cast<double>(cost.units[i]);
  return sum;
}

Result<Prices> read_prices(const json::value& file) {
  if (!file.is_object()) return invalid("prices", "the file must be an object with currency and prices");
  Prices prices;
  openai::Fields fields(file.get_object());
  TRY_VOID(fields.text("currency", prices.currency));
  if (prices.currency.empty() || prices.currency.size() > kCurrencyBytesMax)
    return invalid("currency", "must have 1 to {} bytes, as \"EUR\"", kCurrencyBytesMax);
  TRY(const json::object* units, fields.object("prices"));
  if (units == nullptr || units->empty()) return invalid("prices", "must name the price of a unit");
  openai::Fields of_units(*units, "prices.");
  for (std::size_t i = 0; i < kCostUnits; ++i) {
    const std::string_view name = kCostFields[i].name;
    TRY_VOID(of_units.number(name, prices.per_unit[i]));
    if (prices.per_unit[i] < 0)
      return invalid(of_units.full_name(name), "is {}: must be at least 0", prices.per_unit[i]);
  }
  for (const openai::Fields* each : {&fields, &of_units})
    if (const auto unknown = each->unread(); !unknown.empty())
      return invalid(unknown.front(), "is unknown: the units are in docs/guides/cost.md");
  return prices;
}

Result<Prices> read_prices_file(const std::string& path) {
  TRY(const json::value file, read_yaml_file(path, "prices"));
  return read_prices(file);
}

json::object cost_json(const AnswerCost& cost, const Prices* prices) {
  json::object out;
  for (std::size_t i = 0; i < kCostUnits; ++i)
    if (cost.units[i] != 0) out[kCostFields[i].name] = cost.units[i];
  if (prices == nullptr) return out;
  out["money"] = prices->money(cost);
  out["currency"] = prices->currency;
  return out;
}

std::string hashed_tenant(std::string_view client) {
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(client)), 0);
  return fmt::format("tenant-{:012x}", hash.high >> 16);
}

std::string tenant_label(std::string_view name) {
  std::string label(name.substr(0, kLabelBytesMax));
  for (char& c : label)
    if (c < 0x20 || c > 0x7e) c = '_';
  return label.empty() ? std::string(kAnonymous) : label;
}

void TenantCosts::add(std::string_view tenant, const AnswerCost& cost, int requests) {
  const std::lock_guard lock(mutex_);
  auto found = tenants_.find(tenant);
  if (found == tenants_.end()) {
    const bool full = tenants_.size() >= kTenantsMax;
    found = tenants_.try_emplace(std::string(full ? kOthers : tenant)).first;
  }
  found->second.cost += cost;
  found->second.requests += requests;
}

std::string TenantCosts::metrics(const std::optional<Prices>& prices) const {
  std::map<std::string, Sum, std::less<>> tenants;
  {
    const std::lock_guard lock(mutex_);
    tenants = tenants_;
  }
  std::string out;
  const auto counter = [&](std::string_view name, std::string_view help, std::string_view more,
                           auto&& value) {
    const std::string full = fmt::format("{}_tenant_{}_total", prefix_, name);
    fmt::format_to(std::back_inserter(out), "# HELP {} {}.\n# TYPE {} counter\n", full, help, full);
    for (const auto& [tenant, sum] : tenants)
      fmt::format_to(std::back_inserter(out), "{}{{tenant=\"{}\"{}}} {}\n", full, escaped_label(tenant), more,
                     value(sum));
  };
  counter("finished_requests", "Requests whose answers have all ended", "",
          [](const Sum& sum) { return sum.requests; });
  for (std::size_t i = 0; i < kCostUnits; ++i)
    counter(kCostFields[i].metric, kCostFields[i].help, "",
            [i](const Sum& sum) { return static_cast<double>(sum.cost.units[i]) / kCostFields[i].per_base; });
  if (prices)
    counter("money", "Cost at the prices of --prices",
            fmt::format(",currency=\"{}\"", escaped_label(prices->currency)),
            [&](const Sum& sum) { return prices->money(sum.cost); });
  return out;
}

Accounts::~Accounts() {
  if (log_ >= 0) close(log_);
}

Result<> Accounts::open() {
  if (options_.access_log.empty()) return {};
  log_ = ::open(options_.access_log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log_ >= 0) return {};
  return invalid("--access-log", "{} cannot be written: {}", options_.access_log, std::strerror(errno));
}

// Writes each line with one write(), so that the lines of several threads and processes do not mix.
void Accounts::log(const AccessEntry& entry) const {
  if (log_ < 0) return;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  json::object line{{"time", fmt::format("{:%FT%T}Z", now)},  {"id", tenant_label(entry.id)},
                    {"tenant", std::string(entry.tenant)},    {"path", std::string(entry.path)},
                    {"model", std::string(entry.model)},      {"seconds", entry.seconds},
                    {"cost", cost_json(entry.cost, prices())}};
  if (entry.status != 0) line["status"] = entry.status;
  if (!entry.finish.empty()) line["finish_reason"] = std::string(entry.finish);
  if (entry.answers != 0) {
    line["prompt_tokens"] = entry.prompt_tokens;
    line["answers"] = entry.answers;
  }
  const std::string text = json::serialize(line) + "\n";
  if (write(log_, text.data(), text.size()) < 0) return;  // an answer must not fail because the disk is full
}

std::string compute_metrics(std::span<const EngineStats> engines, std::string_view model_name) {
  std::string out;
  const auto counter = [&](std::string_view name, std::string_view help, std::int64_t CostStats::* value) {
    fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} counter\n", name, help, name);
    for (const EngineStats& engine : engines)
      fmt::format_to(std::back_inserter(out), "{}{{model_name=\"{}\",engine=\"{}\"}} {}\n", name, model_name,
                     engine.engine, static_cast<double>(engine.costs.*value) / 1e9);
  };
  counter("octavo_engine_compute_seconds_total", "Time of the engine's steps.", &CostStats::compute_ns);
  counter("octavo_engine_unassigned_seconds_total",
          "Time of steps whose answers had all ended before the step did; part of the time of all steps.",
          &CostStats::unassigned_ns);
  return out;
}

}  // namespace octavo
