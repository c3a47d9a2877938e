#include "fleet/discover/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <map>
#include <mutex>

#include "base/base64.h"
#include "http/server.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

// A server with one list of workers. `answers` runs on the server's thread.
class ListServer {
 public:
  using Answers = std::function<http::Response(const http::Request&)>;
  explicit ListServer(Answers answers)
      : server_(*http::Server::start({.port = 0}, [this, answers](std::shared_ptr<http::Exchange> exchange) {
          const std::lock_guard lock(mutex_);
          exchange->respond(answers(exchange->request()));
        })) {}
  http::Url url() const { return {.host = "127.0.0.1", .port = server_->port()}; }
  // Calls the function while the server handles no request.
  template <class Function>
  auto look(Function function) {
    const std::lock_guard lock(mutex_);
    return function();
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<http::Server> server_;
};

http::Response of(const json::object& body, int status = 200) {
  return {.status = status, .body = json::serialize(body)};
}

// A stand-in for etcd's JSON gateway, with keys and leases.
struct EtcdStandIn {
  struct Key {
    std::string value, lease;
  };
  std::map<std::string, Key> keys = {};
  int leases = 0;
  int puts = 0;
  bool is_alive = false;  // the last lease has not expired

  http::Response answer(const http::Request& request) {
    const json::object body = json::parse(request.body).as_object();
    const auto text = [&](std::string_view name) { return std::string(body.at(name).as_string()); };
    if (request.path == "/v3/lease/grant") {
      is_alive = true;
      return of({{"ID", std::to_string(++leases)}, {"TTL", "10"}});
    }
    if (request.path == "/v3/lease/keepalive") {
      json::object result{{"ID", text("ID")}};
      if (is_alive) result["TTL"] = "10";
      return of({{"result", std::move(result)}});
    }
    if (request.path == "/v3/lease/revoke") {
      std::erase_if(keys, [&](const auto& key) { return key.second.lease == text("ID"); });
      return of({});
    }
    const std::string key = *decode_base64(text("key"));
    if (request.path == "/v3/kv/put") {
      ++puts;
      keys[key] = {*decode_base64(text("value")), text("lease")};
      return of({});
    }
    const auto found = keys.find(key);
    if (found == keys.end()) return of({});
    return of({{"kvs", json::array{json::object{{"lease", found->second.lease}}}}});
  }
};

const Endpoint kWorker{
    .url = "http://*:8000", .models = {"m"}, .kv_events_endpoint = "tcp://*:5557", .ranks = 2};

TEST(Registration, AKeyInAnEtcdLivesAsLongAsItsLease) {
  EtcdStandIn etcd;
  ListServer server([&](const http::Request& request) { return etcd.answer(request); });
  const auto entry = etcd_entry({.etcd = EtcdOptions{.url = server.url(), .prefix = "/w/"}}, kWorker);
  ASSERT_TRUE(entry->keep());
  server.look([&] {
    EXPECT_EQ(
        etcd.keys.at("/w/127.0.0.1:8000").value,
        R"({"url":"http://127.0.0.1:8000","models":["m"],"kv_events":"tcp://127.0.0.1:5557","ranks":2})");
  });
  ASSERT_TRUE(entry->keep());
  server.look([&] {
    EXPECT_EQ(etcd.leases, 1);
    EXPECT_EQ(etcd.puts, 1);
    etcd.keys.clear();  // another program deletes the key
  });
  ASSERT_TRUE(entry->keep());
  server.look([&] {
    EXPECT_EQ(etcd.leases, 1);
    EXPECT_EQ(etcd.keys.size(), 1);
    etcd.keys.clear();
    etcd.is_alive = false;  // etcd was unreachable until the lease expired
  });
  ASSERT_TRUE(entry->keep());
  server.look([&] {
    EXPECT_EQ(etcd.keys.at("/w/127.0.0.1:8000").lease, "2");
    etcd.keys["/w/127.0.0.1:8000"].lease = "7";  // the lease of the previous process
  });
  ASSERT_TRUE(entry->keep());
  server.look([&] { EXPECT_EQ(etcd.keys.at("/w/127.0.0.1:8000").lease, "2"); });
  ASSERT_TRUE(entry->remove());
  server.look([&] { EXPECT_TRUE(etcd.keys.empty()); });
}

TEST(Registration, AnErrorSaysWhatWasTried) {
  ListServer server([](const http::Request&) { return of({{"error", "no space"}}, 503); });
  const RegistrationOptions options{.etcd = EtcdOptions{.url = server.url()}, .host = "10.0.0.1"};
  EXPECT_THAT(etcd_entry(options, kWorker)->keep().error().message,
              HasSubstr(R"(/v3/lease/grant returned HTTP status 503: "{\"error\":\"no space\"}")"));
  EXPECT_THAT(router_entry(options, server.url(), kWorker)->keep().error().message,
              HasSubstr("POST /workers returned HTTP status 503"));
}

TEST(Registration, ARouterIsToldAgainAndForgetsOnlyThisWorker) {
  std::map<std::string, std::string> urls;  // by worker id
  std::string next = "3", last;
  int posts = 0;
  ListServer server([&](const http::Request& request) -> http::Response {
    if (request.headers.find("Authorization") != "Bearer key") return {.status = 401};
    if (request.method == "POST") {
      ++posts;
      last = request.body;
      urls[next] = json::parse(request.body).at("url").as_string();
      return of({{"worker_id", next}}, 202);
    }
    const std::string id = request.path.substr(request.path.rfind('/') + 1);
    if (!urls.contains(id)) return {.status = 404};
    if (request.method == "GET") return of({{"url", urls.at(id)}});
    urls.erase(id);
    return of({}, 202);
  });
  const auto entry = router_entry({.host = "10.0.0.1", .api_key = "key"}, server.url(), kWorker);
  ASSERT_TRUE(entry->keep());
  server.look([&] {
    EXPECT_EQ(urls.at("3"), "http://10.0.0.1:8000");
    EXPECT_THAT(last, HasSubstr(R"("worker_type":"regular")"));
    EXPECT_THAT(last, HasSubstr(R"("kv_events":"tcp://10.0.0.1:5557")"));
  });
  ASSERT_TRUE(entry->keep());
  server.look([&] {
    EXPECT_EQ(posts, 1) << "another POST would overwrite what an administrator has changed";
    urls.clear();
  });
  ASSERT_TRUE(entry->keep());
  server.look([&] {
    EXPECT_EQ(posts, 2) << "the router has forgotten the worker";
    urls = {{"3", "http://10.0.0.2:8000"}};  // the router has restarted
  });
  ASSERT_TRUE(entry->remove());
  server.look([&] {
    EXPECT_EQ(urls.size(), 1) << "the worker of another server stays";
    next = "4";
  });
  ASSERT_TRUE(entry->keep());
  ASSERT_TRUE(entry->remove());
  server.look([&] { EXPECT_EQ(urls.size(), 1); });
}

}  // namespace
}  // namespace octavo::fleet
