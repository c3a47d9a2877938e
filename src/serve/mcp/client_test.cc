#include "serve/mcp/client.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <future>
#include <mutex>

#include "http/server.h"
#include "http/sse.h"
#include "serve/mcp/threads.h"
#include "serve/mcp/turn.h"

namespace octavo::mcp {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

// Runs an MCP server. results_[method] is its JSON-RPC result; "": it sends no answer.
class McpClientTest : public testing::Test {
 protected:
  Client client(int timeout_ms = 60'000) {
    http::Url url{.host = "127.0.0.1", .port = server_->port(), .target = "/mcp"};
    return Client(std::move(url), {{"Authorization", "Bearer key"}}, timeout_ms, budget_);
  }

  const std::shared_ptr<Budget> budget_ = std::make_shared<Budget>(Budget{.us = 300'000'000});
  std::map<std::string, std::string> results_{{"initialize", R"({"protocolVersion":"2025-06-18"})"}};
  bool events_ = false;
  std::mutex mutex_;
  std::vector<http::Request> requests_;
  std::vector<std::shared_ptr<http::Exchange>> waiting_;
  std::unique_ptr<http::Server> server_ =
      http::Server::start({}, [this](const std::shared_ptr<http::Exchange>& exchange) {
        const std::lock_guard lock(mutex_);
        requests_.push_back(exchange->request());
        if (exchange->request().method == "DELETE") return exchange->respond({.status = 200});
        const json::object message = json::parse(exchange->request().body).as_object();
        if (!message.contains("id")) return exchange->respond({.status = 202});
        const std::string result = results_[std::string(message.at("method").as_string())];
        if (result.empty()) return waiting_.push_back(exchange);
        const std::string answer = fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{}}})",
                                               json::serialize(message.at("id")), result);
        http::Response response{.body = answer};
        response.headers.add("Mcp-Session-Id", "s1");
        if (events_) {
          response.content_type = "text/event-stream";
          response.body = http::sse_event(R"({"jsonrpc":"2.0","method":"notifications/progress"})") +
                          http::sse_event("message", answer);
        }
        exchange->respond(std::move(response));
      }).value();
};

TEST_F(McpClientTest, ListsAndCallsToolsInASession) {
  results_["tools/list"] = R"({"tools":[{"name":"add","description":"d","inputSchema":{"type":"object"}}]})";
  results_["tools/call"] = R"({"content":[{"type":"text","text":"a"},{"type":"image","data":"x"}]})";
  for (const bool events : {false, true}) {
    events_ = events;
    Client mcp = client();
    ASSERT_TRUE(mcp.initialize());
    const auto tools = mcp.list_tools();
    ASSERT_TRUE(tools) << tools.error().message;
    EXPECT_EQ(tools->at(0).name, "add");
    const auto result = mcp.call("add", {{"a", 1}});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->text, "a\n[image]");
    EXPECT_FALSE(result->failed);
  }
  const http::Request& last = requests_.back();
  EXPECT_EQ(last.headers.find("Mcp-Session-Id"), "s1");
  EXPECT_EQ(last.headers.find("MCP-Protocol-Version"), "2025-06-18");
  EXPECT_EQ(last.headers.find("Authorization"), "Bearer key");
  EXPECT_FALSE(requests_.front().headers.find("MCP-Protocol-Version"));
}

TEST_F(McpClientTest, ResultsHaveALimit) {
  results_["tools/call"] = fmt::format(R"({{"isError":true,"content":[{{"type":"text","text":"{}"}}]}})",
                                       std::string(100'000, 'x'));
  const auto cut = client().call("t", {});
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->failed);
  EXPECT_EQ(cut->text.substr(Options::kResultBytesMax), "\n[cut: 65536 of 100000 bytes]");
  results_["tools/call"] = '"' + std::string(Options::kAnswerBytesMax, 'x') + '"';
  const auto large = client().call("t", {});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::unavailable);
}

TEST_F(McpClientTest, AnAnswerWithoutAResultIsAnError) {
  results_["tools/call"] = "null";
  const auto nothing = client().call("t", {});
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().message, HasSubstr("neither a result nor an error"));
  results_["initialize"] = R"({"protocolVersion":"1\r\nX: y"})";
  const auto begun = client().initialize();
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().message, HasSubstr("protocolVersion must be a date"));
}

TEST_F(McpClientTest, ErrorsNameTheServer) {
  // before the first request, which may reach the server after its timeout
  results_["tools/list"] = R"({"tools":[],"nextCursor":"again"})";
  const auto late = client(50).call("t", {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  EXPECT_THAT(late.error().message, HasSubstr("tools/call of the MCP server 127.0.0.1:"));
  EXPECT_THAT(client().list_tools().error().message, HasSubstr("more than 16 pages"));
}

TEST_F(McpClientTest, SessionsAreEnded) {
  Client mcp = client();
  ASSERT_TRUE(mcp.initialize());
  mcp.end();
  EXPECT_EQ(requests_.back().method, "DELETE");
  EXPECT_EQ(requests_.back().headers.find("Mcp-Session-Id"), "s1");
  const std::size_t before = requests_.size();
  mcp.end();
  EXPECT_EQ(requests_.size(), before) << "a session ends once";
}

TEST_F(McpClientTest, ListsOfAllServersHaveALimitOfBytes) {
  results_["tools/list"] = R"({"tools":[{"name":"add","description":"12345","inputSchema":{}}]})";
  budget_->list_bytes = 15;  // the tool in the list counts as 10 bytes
  Client first = client(), second = client();
  ASSERT_TRUE(first.list_tools());
  const auto refused = second.list_tools();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message,
              HasSubstr("the lists of tools of the request's MCP servers, including"));
}

TEST_F(McpClientTest, TheServersOfAResponseShareALimitOfTime) {
  budget_->us = 20'000;
  const auto late = client().call("t", {});  // The MCP server does not answer this method.
  ASSERT_FALSE(late);
  EXPECT_LT(budget_->us, 1'000);
  const auto refused = client().call("t", {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("so no more MCP tools run"));
  server_.reset();  // the first request may reach the server after its timeout
  EXPECT_LE(requests_.size(), 1U);
}

TEST(McpThreads, AServerDelaysNoOther) {
  std::promise<void> end, ran;
  Threads threads({.allowed = {"slow", "fast"}});
  const auto ended = end.get_future().share();
  for (int i = 0; i < Options::kThreads; ++i) ASSERT_TRUE(threads.try_post(0, [ended] { ended.wait(); }));
  ASSERT_TRUE(threads.try_post(1, [&] { ran.set_value(); }));
  ran.get_future().wait();
  std::size_t waiting = 0;
  while (threads.try_post(0, [] {})) ++waiting;
  EXPECT_LE(waiting, Options::kWaitingMax) << "the number of waiting tasks is limited";
  end.set_value();
}

// An exchange with a client that does not read.
class FullExchange final : public http::Exchange {
 public:
  FullExchange() : Exchange({}) {}
  bool wait_writable(std::function<void()>) override { return true; }
  std::size_t unsent_bytes() const override { return 7; }
};

TEST(McpTurn, WaitsForTheClientOfTheSession) {
  Turn turn({}, std::make_shared<FullExchange>(), {});
  EXPECT_TRUE(turn.wait_writable([] {}));
  EXPECT_EQ(turn.unsent_bytes(), 7U);
}

}  // namespace
}  // namespace octavo::mcp
