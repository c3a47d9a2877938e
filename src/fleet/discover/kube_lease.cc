#include "fleet/discover/kube_lease.h"

#include <fmt/chrono.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// Times of client-go's leader election, so that pickers behave like other Kubernetes programs.
constexpr std::int64_t kLeaseSeconds = 15;
constexpr std::int64_t kRenewWithinUs = 10'000'000;
constexpr std::chrono::seconds kRenewInterval{2};

std::string wall_clock() {
  const auto now = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto micros = now.time_since_epoch().count() % 1'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     micros);
}

}  // namespace

std::optional<json::object> LeaseElection::claim(const json::object* seen, std::int64_t now,
                                                 std::string_view wall) {
  json::object lease{{"apiVersion", "coordination.k8s.io/v1"},
                     {"kind", "Lease"},
                     {"metadata", json::object{{"name", name_}}},
                     {"spec", json::object{}}};
  if (seen) lease = *seen;
  if (!lease["spec"].is_object()) lease["spec"] = json::object{};
  json::object& spec = lease["spec"].get_object();
  const json::value* holder_value = spec.if_contains("holderIdentity");
  const std::string_view holder =
      holder_value && holder_value->is_string() ? std::string_view(holder_value->get_string()) : "";
  const bool ours = holder == identity_;
  const bool free = holder.empty();
  if (!ours && !free) {
    if (const std::string looks = json::serialize(spec); looks != seen_) {
      seen_ = looks;
      seen_us_ = now;
    }
    const json::value* duration = spec.if_contains("leaseDurationSeconds");
    const std::int64_t seconds = duration && duration->is_int64() ? duration->get_int64() : kLeaseSeconds;
    if (now - seen_us_ < seconds * 1'000'000) return std::nullopt;
  }
  if (!ours) {
    const json::value* transitions = spec.if_contains("leaseTransitions");
    const std::int64_t before = transitions && transitions->is_int64() ? transitions->get_int64() : -1;
    spec["leaseTransitions"] = before + 1;
    spec["acquireTime"] = wall;
    spec["holderIdentity"] = identity_;
  }
  spec["leaseDurationSeconds"] = kLeaseSeconds;
  spec["renewTime"] = wall;
  return lease;
}

bool LeaseElection::leads(std::int64_t now) const {
  return renewed_us_ && now - *renewed_us_ < kRenewWithinUs;
}

KubeLease::KubeLease(KubeApi api, std::string space, std::string name, std::string identity,
                     std::function<void(bool)> changed)
    : api_(std::move(api)),
      collection_(fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", space)),
      name_(name),
      changed_(std::move(changed)),
      election_(std::move(identity), std::move(name)),
      thread_([this] { run(); }) {}

KubeLease::~KubeLease() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void KubeLease::run() {
  std::optional<bool> reported;
  bool failing = false;
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    lock.unlock();
    const Result<> done = once();
    if (!done && !failing) log_warning("the lease {}: {}", name_, done.error().message);
    failing = !done;
    const bool leads = election_.leads(now_us());
    if (reported != leads) {
      log_info("lease {}: {}", name_, leads ? "ours" : "not held by this picker");
      changed_(leads);
      reported = leads;
    }
    lock.lock();
    wake_.wait_for(lock, kRenewInterval, [this] { return stopped_; });
  }
}

Result<> KubeLease::once() {
  TRY(KubeConnection connection, KubeConnection::open(api_));
  const std::string path = collection_ + "/" + name_;
  TRY(const http::Response seen, connection.request("GET", path));
  boost::system::error_code error;
  const json::value lease = json::parse(seen.body, error);
  const bool exists = seen.status == 200 && !error && lease.is_object();
  if (!exists && seen.status != 404) return failure(ErrorCode::io, "HTTP {}", seen.status);
  const auto claim = election_.claim(exists ? &lease.get_object() : nullptr, now_us(), wall_clock());
  if (!claim) {
    election_.lost();
    return {};
  }
  TRY(const http::Response written,
      connection.request(exists ? "PUT" : "POST", exists ? path : collection_, json::serialize(*claim)));
  if (written.status == 409) {  // another picker has written the lease first
    election_.lost();
    return {};
  }
  if (written.status / 100 != 2) return failure(ErrorCode::io, "HTTP {}", written.status);
  election_.claimed(now_us());
  return {};
}

}  // namespace octavo::fleet
