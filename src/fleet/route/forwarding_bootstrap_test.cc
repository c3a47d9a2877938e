// Tests of SGLang's KV transfer, with a prefill and a decode worker for each request.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <set>

#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// The bodies that a worker has received. Thread-safe.
class Got {
 public:
  void add(const http::Request& request) {
    const std::lock_guard lock(mutex_);
    bodies_.push_back(json::parse(request.body));
  }
  bool has(const json::value& body) {
    const std::lock_guard lock(mutex_);
    return std::ranges::find(bodies_, body) != bodies_.end();
  }
  std::vector<json::value> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

 private:
  std::mutex mutex_;
  std::vector<json::value> bodies_;
};

class BootstrapTest : public RouterTest {
 protected:
  void pair_up(std::vector<std::string> prefill, std::vector<std::string> decode, RetryOptions retry = {}) {
    std::vector<int> ports(prefill.size(), 8998);
    start({.pd = {.enabled = true,
                  .prefill_urls = std::move(prefill),
                  .bootstrap_ports = std::move(ports),
                  .decode_urls = std::move(decode)},
           .retry = retry});
  }
  // A decode worker that responds when the prefill worker has received the same bootstrap_room. The router
  // ends both requests when the response is complete.
  auto decoder(Got& prefill, std::string answer = "") {
    return [this, &prefill, answer](const std::shared_ptr<http::Exchange>& e) {
      const json::value body = json::parse(e->request().body);
      if (body.as_object().contains("bootstrap_room")) wait([&] { return prefill.has(body); });
      e->respond({.body = answer.empty() ? e->request().body : answer});
    };
  }
};

TEST_F(BootstrapTest, BothWorkersGetTheRequestAndMeetInARoom) {
  Got at_prefill;
  Replica prefill("p", [&](auto e) {
    at_prefill.add(e->request());
    e->respond({.body = "{}"});
  });
  Replica decode("d", decoder(at_prefill));
  pair_up({prefill.url()}, {decode.url()});
  const json::value first = json::parse(post(R"({"prompt": "a", "max_tokens": 9})").body);
  EXPECT_EQ(first.at("bootstrap_host"), "127.0.0.1");
  EXPECT_EQ(first.at("bootstrap_port"), 8998);
  EXPECT_EQ(first.at("max_tokens"), 9) << "the prefill worker ends by itself";
  const json::value second = json::parse(post(R"({"prompt": ["a", "b"]})").body);
  EXPECT_EQ(second.at("bootstrap_room").as_array().size(), 2);
  EXPECT_NE(second.at("bootstrap_room").at(0), first.at("bootstrap_room"));
  EXPECT_EQ(post(R"({"prompt": "a", "bootstrap_room": 1})").status, 400) << "rooms are the router's to give";
  EXPECT_EQ(json::parse(connect().post_json("/generate", R"({"text": "a"})")->body).at("bootstrap_port"),
            8998);
  EXPECT_EQ(connect().post_json("/v1/embeddings", R"({"input": "a"})")->body, R"({"input": "a"})");
}

TEST_F(BootstrapTest, StreamsComeFromTheDecodeWorker) {
  Replica prefill("p", [](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: p\n\n");
    e->finish();
  });
  Replica decode("d", [](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: d\n\ndata: [DONE]\n\n");
    e->finish();
  });
  pair_up({prefill.url()}, {decode.url()});
  EXPECT_EQ(post(R"({"prompt": "a", "stream": true})").body, "data: d\n\ndata: [DONE]\n\n");
}

// The decode worker waits for KV blocks that never arrive.
TEST_F(BootstrapTest, APrefillWorkerThatFailsIsReplacedInANewRoom) {
  Got at_decode;
  Replica broken("b", [](auto e) { e->respond({.status = 503}); });
  Keeper keeper;
  std::atomic<bool> is_met = false;
  Replica well("w", [&](auto e) {
    is_met = true;
    e->respond({.body = "{}"});
  });
  Replica decode("d", [&](auto e) {
    at_decode.add(e->request());
    if (!is_met) return keeper(e);
    e->respond({.body = "met"});
  });
  pair_up({broken.url(), well.url()}, {decode.url()});
  for (int i = 0; i < 4; ++i) {
    is_met = false;
    std::atomic<bool> is_answered = false;
    std::thread answering([&] {
      wait([&] { return is_met.load(); });
      // Repeats, because a decode request may reach `keeper` after is_met is set.
      wait([&] {
        for (std::size_t k = 0; k < keeper.size(); ++k) keeper.at(k)->respond({.body = "met"});
        return is_answered.load();
      });
    });
    EXPECT_EQ(post(R"({"prompt": "a"})").body, "met");
    is_answered = true;
    answering.join();
  }
  EXPECT_GE(broken.requests, 1);
  std::set<std::string> rooms;
  for (const json::value& body : at_decode.bodies()) rooms.insert(json::serialize(body.at("bootstrap_room")));
  EXPECT_EQ(rooms.size(), at_decode.bodies().size());
}

TEST_F(BootstrapTest, ADecodeWorkerThatFailsIsReplacedWithItsPrefillWorker) {
  Got at_prefill;
  Replica prefill("p", [&](auto e) {
    at_prefill.add(e->request());
    e->respond({.body = "{}"});
  });
  Replica broken("b", [](auto e) { e->respond({.status = 503}); });
  Replica well("w", decoder(at_prefill));
  pair_up({prefill.url()}, {broken.url(), well.url()});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(at_prefill.has(json::parse(post(R"({"prompt": "a"})").body)));
  EXPECT_GE(broken.requests, 1);
}

TEST_F(BootstrapTest, TheNextTurnOfAStoredResponseHasAPrefillWorkerToo) {
  Got at_prefill;
  Replica prefill("p", [&](auto e) {
    at_prefill.add(e->request());
    e->respond({.body = "{}"});
  });
  Replica decode("d", decoder(at_prefill, R"({"id": "resp_1"})"));
  pair_up({prefill.url()}, {decode.url()});
  for (const char* body : {R"({"input": "a"})", R"({"input": "a", "previous_response_id": "resp_1"})"})
    EXPECT_EQ(connect().post_json("/v1/responses", body)->status, 200) << body;
  EXPECT_EQ(decode.requests, 2);
  EXPECT_EQ(at_prefill.bodies().size(), 2);
}

// SGLang's metrics do not count a prompt that waits until the decode worker has capacity.
TEST_F(BootstrapTest, APromptMayWaitAtAnIdlePrefillWorker) {
  Keeper at_prefill, at_decode;
  Replica prefill("p", std::ref(at_prefill));
  prefill.waiting = 0;
  Replica decode("d", std::ref(at_decode));
  pair_up({prefill.url()}, {decode.url()});
  std::thread asking([&] { EXPECT_EQ(post(R"({"prompt": "a"})").body, "d"); });
  wait([&] { return at_prefill.size() == 1 && at_decode.size() == 1; });
  const int before = prefill.pages;
  wait([&] { return prefill.pages >= before + 10; });
  EXPECT_EQ(prefill.requests, 1);
  EXPECT_EQ(decode.requests, 1);
  for (std::size_t i = 0; i < at_prefill.size(); ++i) at_prefill.at(i)->respond({.body = "{}"});
  for (std::size_t i = 0; i < at_decode.size(); ++i) at_decode.at(i)->respond({.body = "d"});
  asking.join();
}

TEST_F(BootstrapTest, WithoutAPairTheRequestIsRefused) {
  Replica broken("b", [](auto e) { e->respond({.status = 500, .body = "broken"}); });
  Replica wrong("w", [](auto e) { e->respond({.status = 400, .body = "wrong"}); });
  Keeper keeper;
  Replica decode("d", std::ref(keeper));
  pair_up({broken.url()}, {decode.url()}, {.attempts_max = 2});
  EXPECT_EQ(post(R"({"prompt": "a"})").body, "broken");
  pair_up({wrong.url()}, {decode.url()});
  EXPECT_EQ(post(R"({"prompt": "a"})").body, "wrong") << "the client's fault";
  wait([&] { return keeper.closed == static_cast<int>(keeper.size()); });
}

TEST_F(BootstrapTest, APrefillWorkerThatBreaksEachRequestIsNotAskedForEver) {
  Got at_prefill, at_breaking;
  Keeper unanswered;
  Replica breaks("breaks", [&](auto e) { at_breaking.add(e->request()); });
  Replica prefill("p", [&](auto e) {
    at_prefill.add(e->request());
    e->respond({.body = "{}"});
  });
  Replica decode("d", [&](auto e) {
    const json::value body = json::parse(e->request().body);
    wait([&] { return at_prefill.has(body) || at_breaking.has(body); });
    at_prefill.has(body) ? e->respond({.body = "{}"}) : unanswered(e);
  });
  start({.pd = {.enabled = true,
                .prefill_urls = {breaks.url(), prefill.url()},
                .bootstrap_ports = {8998, 8998},
                .decode_urls = {decode.url()}},
         .health = {.breaker = {.failure_threshold = 2}}});
  for (int i = 0; i < 12; ++i) EXPECT_EQ(post(R"({"prompt": "a"})").status, 200);
  EXPECT_EQ(breaks.requests, 2);
}

}  // namespace
}  // namespace octavo::fleet
