#include "fleet/route/batch_host.h"

#include "base/testing/scratch_directory.h"
#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

class BatchHostTest : public RouterTest {
 protected:
  const http::Headers operators_{{"Authorization", "Bearer operator"}};
  const http::Headers tenant_{{"Authorization", "Bearer k1"}};
  const ScratchDirectory scratch_;

  void route_tenant(const Replica& worker, TenantOptions tenant) {
    router_ = *Router::start({.workers = {.urls = {worker.url()}},
                              .policy = "round_robin",
                              .api_keys = {"operator"},
                              .tenants = {std::move(tenant)}},
                             {.folder = scratch_.path()});
    wait([&] { return ask("GET", "/readiness", "").status == 200; });
  }
  http::Response ask(std::string_view method, std::string_view path, std::string body,
                     http::Headers more = {}) {
    http::Headers headers = tenant_;
    for (const auto& [name, value] : more) headers.add(name, value);
    return *connect().request(method, path, std::move(body), headers);
  }
  // Returns the id in a JSON reply.
  static std::string id_of(const http::Response& response) {
    const std::size_t at = response.body.find("\"id\":\"") + 6;
    EXPECT_EQ(response.status, 200) << response.body;
    return response.body.substr(at, response.body.find('"', at) - at);
  }
  std::string start_batch(int lines) {
    std::string file;
    for (int i = 0; i < lines; ++i)
      file += fmt::format(
          R"({{"custom_id":"{}","method":"POST","url":"/v1/completions","body":{{"model":"m","prompt":"x"}}}})"
          "\n",
          i);
    const std::string form = fmt::format(
        "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n{}\r\n--b--\r\n",
        file);
    const std::string id =
        id_of(ask("POST", "/v1/files", form, {{"Content-Type", "multipart/form-data; boundary=b"}}));
    return id_of(ask("POST", "/v1/batches",
                     fmt::format(R"({{"input_file_id":"{}","endpoint":"/v1/completions",)"
                                 R"("completion_window":"24h"}})",
                                 id),
                     {{"Content-Type", "application/json"}}));
  }
  std::int64_t limited() {
    const std::string page = connect().request("GET", "/metrics", {}, operators_)->body;
    const std::string name =
        "octavo_route_tenant_requests_total{tenant=\"one\",outcome=\"concurrency_limited\"} ";
    const std::size_t at = page.find(name);
    EXPECT_NE(at, std::string::npos) << page;
    return std::atoll(page.c_str() + at + name.size());
  }
};

// A worker may run 16 lines. The tenant may have three lines, which is three quarters of its limit of four. A
// line must count when it is sent, not when a loop handles it. Otherwise further lines would be sent and
// refused.
TEST_F(BatchHostTest, LinesCountInTheTenantsLimitFromTheMomentTheyAreSent) {
  Keeper keeper;
  Replica worker("a", [&](auto exchange) { keeper(std::move(exchange)); });
  route_tenant(worker, {.name = "one", .keys = {"k1"}, .concurrent_max = 4});
  const std::string batch = start_batch(8);
  for (std::size_t answered = 0; answered < 8; ++answered) {
    wait([&] { return keeper.size() == std::min<std::size_t>(answered + 3, 8); });
    keeper.at(answered)->respond({.body = R"({"id":"x"})"});
  }
  wait([&] {
    return ask("GET", "/v1/batches/" + batch, "").body.find("\"status\":\"completed\"") != std::string::npos;
  });
  EXPECT_EQ(limited(), 0);
  EXPECT_EQ(worker.requests, 8);
}

}  // namespace
}  // namespace octavo::fleet
