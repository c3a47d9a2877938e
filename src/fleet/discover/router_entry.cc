// A worker in a router's list. Calls the routes /workers of `octavo route` or SGLang's router.
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/discover/registration.h"
#include "fleet/discover/worker_record.h"
#include "http/client.h"
#include "http/url.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr int kRouterTimeoutMs = 3'000;
constexpr int kConflict = 409;  // status of SGLang's router if the worker is already in the list

std::string member_of(const std::string& body, std::string_view name) {
  boost::system::error_code error;
  const json::value parsed = json::parse(body, error);
  const json::value* field = !error && parsed.is_object() ? parsed.get_object().if_contains(name) : nullptr;
  return field != nullptr && field->is_string() ? std::string(field->get_string()) : std::string();
}

std::string_view sglang_type(Role role) {
  if (role == Role::both) return "regular";
  return role == Role::prefill ? "prefill" : "decode";
}

class RouterEntry : public ListEntry {
 public:
  RouterEntry(const RegistrationOptions& options, http::Url router, Endpoint worker)
      : router_(std::move(router)),
        host_(options.host),
        api_key_(options.api_key),
        worker_(std::move(worker)) {}

  std::string name() const override { return "router " + http::host_and_port(router_.host, router_.port); }

  Result<> keep() override {
    std::string host = host_;
    if (host.empty()) {
      TRY(host, host_towards(router_));
    }
    const Endpoint worker = at_host(worker_, host);
    // A second POST would overwrite changes that an administrator has made to the entry.
    if (worker.url == url_) {
      TRY(const bool listed, is_listed());
      if (listed) return {};
    }
    json::object record = write_worker(worker);
    record["worker_type"] = sglang_type(worker.role);
    TRY(const http::Response answer, call("POST", "/workers", json::serialize(record)));
    if (answer.status / 100 != 2 && answer.status != kConflict)
      return failure(ErrorCode::io, "POST /workers returned HTTP status {}: {}", answer.status,
                     quoted_text(std::string_view(answer.body).substr(0, 200)));
    const std::string id = member_of(answer.body, "worker_id");
    if (id.empty()) return {};
    if (id != id_) log_info("{}: registered {} as worker {}", name(), worker.url, id);
    id_ = id;
    url_ = worker.url;
    return {};
  }

  Result<> remove() override {
    if (id_.empty()) return {};
    TRY(const bool listed, is_listed());
    if (!listed) return {};
    TRY(const http::Response removed, call("DELETE", "/workers/" + id_));
    if (removed.status / 100 == 2) return {};
    return failure(ErrorCode::io, "DELETE /workers/{} returned HTTP status {}", id_, removed.status);
  }

 private:
  // Compares the URL, because a restarted router may have given the id to a different worker.
  Result<bool> is_listed() const {
    TRY(const http::Response known, call("GET", "/workers/" + id_));
    return known.status != 404 && member_of(known.body, "url") == url_;
  }

  Result<http::Response> call(std::string_view method, const std::string& path, std::string body = {}) const {
    TRY(http::Client client, http::Client::connect({.host = router_.host,
                                                    .port = router_.port,
                                                    .tls = router_.tls,
                                                    .timeout_ms = kRouterTimeoutMs}));
    http::Headers headers;
    if (!body.empty()) headers.add("Content-Type", "application/json");
    if (!api_key_.empty()) headers.add("Authorization", "Bearer " + api_key_);
    return client.request(method, path, std::move(body), std::move(headers));
  }

  const http::Url router_;
  const std::string host_, api_key_;
  const Endpoint worker_;
  std::string id_, url_;  // the worker's id and URL in the router; "": the router does not list the worker
};

}  // namespace

std::unique_ptr<ListEntry> router_entry(const RegistrationOptions& options, const http::Url& router,
                                        Endpoint worker) {
  return std::make_unique<RouterEntry>(options, router, std::move(worker));
}

}  // namespace octavo::fleet
