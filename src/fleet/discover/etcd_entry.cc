// A worker's key in etcd. etcd deletes the key when the lease of the key expires.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/base64.h"
#include "base/log.h"
#include "fleet/discover/etcd_call.h"
#include "fleet/discover/registration.h"
#include "fleet/discover/worker_record.h"
#include "http/url.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr int kEntryTimeoutMs = 3'000;

std::string field_text(const json::object& object, std::string_view name) {
  const json::value* field = object.if_contains(name);
  return field != nullptr && field->is_string() ? std::string(field->get_string()) : std::string();
}

class EtcdEntry : public ListEntry {
 public:
  EtcdEntry(const RegistrationOptions& options, Endpoint worker)
      : etcd_(*options.etcd), host_(options.host), lease_s_(options.lease_s), worker_(std::move(worker)) {}

  std::string name() const override {
    return fmt::format("etcd {}, {}", http::host_and_port(etcd_.url.host, etcd_.url.port), etcd_.prefix);
  }

  Result<> keep() override {
    TRY(http::Client client, etcd_connect(etcd_.url, kEntryTimeoutMs));
    TRY_VOID(keep_lease(client));
    std::string host = host_;
    if (host.empty()) {
      TRY(host, host_towards(etcd_.url));
    }
    const Endpoint worker = at_host(worker_, host);
    const std::string key = etcd_.prefix + worker.name;
    TRY(const bool found, exists(client, key));
    if (found) return {};
    TRY_VOID(call(client, "/v3/kv/put",
                  {{"key", encode_base64(key)},
                   {"value", encode_base64(json::serialize(write_worker(worker)))},
                   {"lease", lease_}}));
    log_info("{}: registered as {}", name(), key);
    return {};
  }

  Result<> remove() override {
    if (lease_.empty()) return {};
    TRY(http::Client client, etcd_connect(etcd_.url, kEntryTimeoutMs));
    TRY_VOID(call(client, "/v3/lease/revoke", {{"ID", lease_}}));
    return {};
  }

 private:
  static Result<json::object> call(http::Client& client, std::string_view path, const json::object& body) {
    TRY(const std::string answer, etcd_call(client, path, json::serialize(body)));
    boost::system::error_code error;
    json::value parsed = json::parse(answer, error);
    if (error || !parsed.is_object())
      return failure(ErrorCode::corrupt, "the reply of {} is not a JSON object", path);
    return std::move(parsed.get_object());
  }

  Result<> keep_lease(http::Client& client) {
    if (!lease_.empty()) {
      TRY(const json::object answer, call(client, "/v3/lease/keepalive", {{"ID", lease_}}));
      const json::value* result = answer.if_contains("result");
      if (result != nullptr && result->is_object() && !field_text(result->get_object(), "TTL").empty())
        return {};
      log_warning("{}: the lease has expired", name());
      lease_.clear();
    }
    TRY(const json::object granted, call(client, "/v3/lease/grant", {{"TTL", lease_s_}}));
    lease_ = field_text(granted, "ID");
    if (lease_.empty()) return failure(ErrorCode::corrupt, "the reply of /v3/lease/grant has no ID");
    return {};
  }

  // Returns whether the key exists with this process's lease. After a restart, the key may still have the
  // lease of the previous process.
  Result<bool> exists(http::Client& client, const std::string& key) const {
    TRY(const json::object answer, call(client, "/v3/kv/range", {{"key", encode_base64(key)}}));
    const json::value* list = answer.if_contains("kvs");
    if (list == nullptr || !list->is_array() || list->get_array().empty()) return false;
    const json::value& kv = list->get_array().front();
    return kv.is_object() && field_text(kv.get_object(), "lease") == lease_;
  }

  const EtcdOptions etcd_;
  const std::string host_;
  const int lease_s_;
  const Endpoint worker_;
  std::string lease_;
};

}  // namespace

std::unique_ptr<ListEntry> etcd_entry(const RegistrationOptions& options, Endpoint worker) {
  return std::make_unique<EtcdEntry>(options, std::move(worker));
}

}  // namespace octavo::fleet
