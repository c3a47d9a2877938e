#include "fleet/sidecar/sidecar.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "fleet/sidecar/connector.h"
#include "http/client.h"
#include "http/sse.h"
#include "http/testing/gzip.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// An engine that stores its requests and responds as the test has configured.
class Engine {
 public:
  using Behaviour = std::function<http::Response(const http::Request&)>;

  explicit Engine(Behaviour behaviour) : behaviour_(std::move(behaviour)) {
    server_ = *http::Server::start({}, [this](std::shared_ptr<http::Exchange> e) {
      http::Response response = behaviour_(e->request());
      {
        const std::lock_guard lock(mutex_);
        received_.push_back(e->request());
      }
      e->respond(std::move(response));
    });
    port = server_->port();
  }
  void stop() { server_.reset(); }

  std::string address() const { return fmt::format("127.0.0.1:{}", port); }
  std::vector<http::Request> received() const {
    const std::lock_guard lock(mutex_);
    return received_;
  }
  json::object body(std::size_t i) const { return json::parse(received().at(i).body).as_object(); }

  std::uint16_t port = 0;

 private:
  Behaviour behaviour_;
  mutable std::mutex mutex_;
  std::vector<http::Request> received_;
  std::unique_ptr<http::Server> server_;
};

http::Response respond_with(std::string body) { return {.body = std::move(body)}; }
http::Response echo(const http::Request& request) { return respond_with(request.body); }
http::Response streams(std::string events) {
  return {.content_type = "text/event-stream", .body = std::move(events)};
}

constexpr std::string_view kPrompt = R"({"prompt":"a","max_tokens":9,"seed":1.10})";

class SidecarTest : public testing::Test {
 protected:
  void start(const Engine& decoder, SidecarOptions options = {}) {
    options.decoder_url = "http://" + decoder.address();
    options.prefill_retry_backoff_ms = 1;
    auto started = Sidecar::start(std::move(options));
    ASSERT_TRUE(started) << started.error().message;
    sidecar_ = *std::move(started);
  }
  http::Response post(std::string_view body, const std::string& prefillers = "",
                      std::string path = "/v1/completions") {
    http::Headers headers;
    if (!prefillers.empty()) headers.add("x-prefiller-host-port", prefillers);
    return *http::Client::connect({.port = sidecar_->port()})
                ->request("POST", std::move(path), std::string(body), std::move(headers));
  }
  template <class Condition>
  static void wait(Condition condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(condition()) << "not within 60 seconds";
  }

  std::unique_ptr<Sidecar> sidecar_;
};

TEST_F(SidecarTest, CompressedBodiesAreReadAsTheServerReadsThem) {
  Engine prefill([](const auto&) { return respond_with(R"({"kv_transfer_params":{"remote_port":7}})"); });
  Engine decode(echo);
  start(decode, {.http = {.body_bytes_max = 1 << 20}});
  const auto send = [&](std::string body, std::string coding) {
    return *http::Client::connect({.port = sidecar_->port()})
                ->request(
                    "POST", "/v1/completions", std::move(body),
                    {{"x-prefiller-host-port", prefill.address()}, {"Content-Encoding", std::move(coding)}});
  };
  for (const char* coding : {"gzip", "deflate"}) {
    EXPECT_EQ(send(http::gzip(kPrompt), coding).body,
              R"({"kv_transfer_params":{"remote_port":7},)" + std::string(kPrompt.substr(1)));
    EXPECT_EQ(decode.received().back().headers.find("Content-Encoding"), std::nullopt);
    EXPECT_EQ(prefill.received().back().headers.find("Content-Encoding"), std::nullopt);
  }
  EXPECT_EQ(prefill.received().size(), 2U);
  EXPECT_EQ(send(std::string(kPrompt), "gzip").status, 400);
  EXPECT_EQ(send(std::string(kPrompt), "zstd").status, 415);
  EXPECT_EQ(send(http::gzip(std::string(2 << 20, ' ')), "gzip").status, 413);
}

TEST_F(SidecarTest, NixlTellsTheDecoderWhereTheBlocksAre) {
  Engine prefill([](const auto&) {
    return respond_with(
        R"({"usage":{"prompt_tokens_details":{"cached_tokens":5}},"kv_transfer_params":{"remote_port":7}})");
  });
  Engine decode([](const auto&) {
    return respond_with(R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":8}}})");
  });
  start(decode);
  EXPECT_EQ(json::parse(post(kPrompt, prefill.address()).body),
            json::parse(R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":5}}})"));
  EXPECT_EQ(prefill.body(0).at("max_tokens"), 1);
  EXPECT_EQ(prefill.body(0).at("stream"), false);
  EXPECT_EQ(prefill.body(0).at("kv_transfer_params").at("do_remote_decode"), true);
  EXPECT_EQ(decode.received()[0].body,
            R"({"kv_transfer_params":{"remote_port":7},)" + std::string(kPrompt.substr(1)));
  const auto id = [](const Engine& engine) {
    return std::string(engine.received()[0].headers.find("X-Request-Id").value_or(""));
  };
  EXPECT_FALSE(id(prefill).empty());
  EXPECT_EQ(id(prefill), id(decode));
  EXPECT_FALSE(decode.received()[0].headers.find("x-prefiller-host-port"));
}

TEST_F(SidecarTest, EachRouteHasItsOwnLimit) {
  Engine prefill(echo), decode(echo);
  start(decode);
  post(R"({"input":"a","max_output_tokens":9})", prefill.address(), "/v1/responses");
  post(R"({"messages":[],"max_tokens":9})", prefill.address(), "/v1/messages");
  post(R"({"token_ids":[1],"sampling_params":{"max_tokens":9,"min_tokens":2}})", prefill.address(),
       "/inference/v1/generate");
  EXPECT_EQ(prefill.body(0).at("max_output_tokens"), 1);
  EXPECT_EQ(prefill.body(1).at("max_tokens"), 1);
  EXPECT_EQ(prefill.body(2).at("sampling_params"), json::parse(R"({"max_tokens":1,"min_tokens":1})"));
  EXPECT_EQ(json::parse(post(R"({"input":"a"})", prefill.address(), "/v1/embeddings").body).at("input"), "a");
  EXPECT_EQ(prefill.received().size(), 3U) << "embeddings are no answer to decode";
}

TEST_F(SidecarTest, WithoutAPrefillerAllIsAsItCame) {
  Engine decode([](const http::Request& r) { return respond_with(r.method + r.path + r.query + r.body); });
  start(decode);
  EXPECT_EQ(post("{ \"x\":  1 }").body, "POST/v1/completions{ \"x\":  1 }");
  EXPECT_EQ(http::Client::connect({.port = sidecar_->port()})->get("/v1/models?a=b")->body,
            "GET/v1/modelsa=b");
}

TEST_F(SidecarTest, APrefillerThatFailsCostsNoAnswer) {
  Engine broken([](const auto&) { return http::Response{.status = 500}; });
  Engine busy([](const auto&) { return http::Response{.status = 503}; });
  Engine silent([](const auto&) { return respond_with("{}"); });
  Engine decode(echo);
  start(decode, {.prefill_retries_max = 2});
  for (Engine* engine : {&broken, &busy, &silent}) EXPECT_EQ(post(kPrompt, engine->address()).body, kPrompt);
  EXPECT_EQ(broken.received().size(), 3U) << "worth two more attempts";
  EXPECT_EQ(busy.received().size(), 3U);
  silent.stop();
  EXPECT_EQ(post(kPrompt, silent.address()).body, kPrompt);
  EXPECT_EQ(decode.received().size(), 4U);
}

TEST_F(SidecarTest, ABusyPrefillerIsNoFaultOfTheClient) {
  Engine busy([](const auto&) { return http::Response{.status = 429}; });
  Engine decode(echo);
  for (const char* connector : {"nixlv2", "shared-storage"}) {
    start(decode, {.connector = connector});
    EXPECT_EQ(post(kPrompt, busy.address()).body, kPrompt) << connector;
  }
}

TEST_F(SidecarTest, APrefillerThatNeverAnswersIsNotWaitedFor) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  const auto mute = *http::Server::start({}, [&](std::shared_ptr<http::Exchange> e) {
    if (e->request().path != "/metrics") return kept.push_back(std::move(e));
    e->respond({.content_type = "text/plain", .body = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"});
  });
  Engine decode(echo);
  const std::string address = fmt::format("127.0.0.1:{}", mute->port());
  start(decode);
  EXPECT_EQ(post(kPrompt, address).body, kPrompt) << "its metrics say that it has nothing to do";
  start(decode, {.prefill_timeout_ms = 50});
  EXPECT_EQ(post(kPrompt, address).body, kPrompt) << "or it takes too long";
}

TEST_F(SidecarTest, APrefillerWithoutMetricsThatNeverAnswersIsNotWaitedFor) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  const auto mute = *http::Server::start({}, [&](std::shared_ptr<http::Exchange> e) {
    if (e->request().path == "/metrics") return e->respond({.status = 404});
    kept.push_back(std::move(e));
  });
  Engine decode(echo);
  start(decode, {.prefill_retries_max = 5, .prefill_timeout_ms = 600'000, .blind_wait_ms = 1});
  EXPECT_EQ(post(kPrompt, fmt::format("127.0.0.1:{}", mute->port())).body, kPrompt);
  EXPECT_EQ(kept.size(), 1U) << "a second attempt would wait as well";
}

TEST_F(SidecarTest, APrefillerThatLostTheRequestGetsItAgain) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  const auto forgetful = *http::Server::start({}, [&](std::shared_ptr<http::Exchange> e) {
    if (e->request().path == "/metrics")
      return e->respond({.content_type = "text/plain",
                         .body = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"});
    kept.push_back(e);
    if (kept.size() == 2) e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"});
  });
  Engine decode(echo);
  start(decode, {.prefill_retries_max = 1});
  EXPECT_TRUE(post(kPrompt, fmt::format("127.0.0.1:{}", forgetful->port())).body.contains("remote_port"));
}

TEST_F(SidecarTest, WhatTheClientDidWrongComesFromThePrefiller) {
  Engine prefill([](const auto&) {
    return http::Response{.status = 400, .headers = {{"X-Reason", "why"}}, .body = "no"};
  });
  Engine decode(echo);
  start(decode);
  const http::Response refused = post(kPrompt, prefill.address());
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.headers.find("X-Reason"), "why");
  for (const char* name : {"Content-Length", "Connection", "Date"})
    EXPECT_EQ(refused.headers.count(name), 1U) << name;
  EXPECT_TRUE(decode.received().empty());
}

TEST_F(SidecarTest, OnlyAllowedPrefillersAreAsked) {
  Engine prefill(echo), decode(echo);
  start(decode, {.only_allowed = true, .allowed_prefillers = {prefill.address()}});
  EXPECT_EQ(post(kPrompt, prefill.address()).status, 200);
  EXPECT_EQ(post(kPrompt, "169.254.169.254:80").status, 403);
  EXPECT_EQ(post(kPrompt, decode.address()).status, 403);
  EXPECT_EQ(post(kPrompt, "a/b").status, 400);
}

TEST_F(SidecarTest, OfSeveralTheFirstOrAnyOne) {
  Engine a(echo), b(echo), decode(echo);
  const std::string both = a.address() + ", " + b.address();
  start(decode);
  for (int i = 0; i < 4; ++i) post(kPrompt, both);
  EXPECT_EQ(a.received().size(), 4U);
  start(decode, {.sample_prefillers = true});
  for (int i = 0; i < 40; ++i) post(kPrompt, both);
  EXPECT_GT(a.received().size(), 4U);
  EXPECT_GT(b.received().size(), 0U);
}

TEST_F(SidecarTest, StreamsSayWhatThePrefillerHadCached) {
  Engine prefill([](const auto&) {
    return respond_with(
        R"({"kv_transfer_params":{},"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":3}}})");
  });
  Engine decode([](const auto&) {
    return streams(
        "data: {\"choices\":[{\"text\":\"a\"}]}\n\n: beat\n\n"
        "data: {\"usage\":{\"prompt_tokens\":8}}\n\ndata: [DONE]\n\n");
  });
  start(decode);
  EXPECT_EQ(
      post(R"({"prompt":"a","stream":true})", prefill.address()).body,
      "data: {\"choices\":[{\"text\":\"a\"}]}\n\n: beat\n\n"
      "data: {\"usage\":{\"prompt_tokens\":8,\"prompt_tokens_details\":{\"cached_tokens\":3}}}\n\ndata: "
      "[DONE]\n\n");
}

TEST_F(SidecarTest, SglangMeetsInARoom) {
  Engine prefill(echo), decode(echo);
  start(decode, {.connector = "sglang", .bootstrap_port = 1234});
  const json::value sent = json::parse(post(kPrompt, prefill.address()).body);
  wait([&] { return prefill.received().size() == 1; });
  EXPECT_EQ(prefill.body(0), sent);
  EXPECT_EQ(sent.at("bootstrap_host"), "127.0.0.1");
  EXPECT_EQ(sent.at("bootstrap_port"), 1234);
  EXPECT_TRUE(sent.at("bootstrap_room").is_int64());
  EXPECT_EQ(sent.at("max_tokens"), 9);
  EXPECT_NE(json::parse(post(kPrompt, prefill.address()).body).at("bootstrap_room"),
            sent.at("bootstrap_room"));
}

TEST_F(SidecarTest, SglangsRoomsAreTheSidecarsToGive) {
  Engine prefill(echo), decode(echo);
  start(decode, {.connector = "sglang"});
  for (const std::string field : {"bootstrap_host", "bootstrap_port", "bootstrap_room"}) {
    const http::Response answer = post(R"({"prompt":"a",")" + field + R"(":1})", prefill.address());
    EXPECT_EQ(answer.status, 400);
    EXPECT_NE(answer.body.find(field), std::string::npos) << answer.body;
  }
  EXPECT_TRUE(decode.received().empty());
  for (const std::string path : {"/v1/embeddings", "/tokenize"})
    EXPECT_EQ(post(R"({"input":"a"})", prefill.address(), path).body, R"({"input":"a"})") << path;
  EXPECT_TRUE(prefill.received().empty());
}

TEST_F(SidecarTest, ABodyOfTooManyValuesGoesAsItCame) {
  Engine prefill(echo), decode(echo);
  std::string body = R"({"prompt":[0)";
  for (int i = 0; i < 1'000'000; ++i) body += ",0";
  body += "]}";
  for (const Connector& connector : connectors()) {
    start(decode, {.connector = std::string(connector.name)});
    EXPECT_TRUE(post(body, prefill.address()).body == body) << connector.name;
  }
  EXPECT_TRUE(prefill.received().empty());
}

TEST_F(SidecarTest, MooncakeMeetsByATransferId) {
  Engine bootstrap([](const http::Request& r) {
    return r.path == "/query" ? respond_with(R"({"3":{"engine_id":"e3"}})") : http::Response{.status = 404};
  });
  Engine prefill(echo), decode(echo);
  start(decode, {.connector = "mooncake", .bootstrap_port = bootstrap.port});
  const json::value sent = json::parse(post(kPrompt, prefill.address()).body).at("kv_transfer_params");
  wait([&] { return prefill.received().size() == 1; });
  EXPECT_EQ(prefill.received()[0].headers.find("X-data-parallel-rank"), "3");
  EXPECT_EQ(prefill.body(0).at("max_tokens"), 1);
  EXPECT_EQ(prefill.body(0).at("kv_transfer_params").at("transfer_id"), sent.at("transfer_id"));
  EXPECT_EQ(sent.at("remote_engine_id"), "e3");
  EXPECT_EQ(sent.at("remote_bootstrap_addr"), json::value("http://" + bootstrap.address()));
  bootstrap.stop();
  EXPECT_EQ(post(kPrompt, prefill.address()).body, kPrompt);
}

TEST_F(SidecarTest, OffloadingFetchesBlocksByAnId) {
  Engine prefill(echo), decode(echo);
  start(decode, {.connector = "offloading", .p2p_port = 7001});
  const json::value sent = json::parse(post(kPrompt, prefill.address()).body).at("kv_transfer_params");
  wait([&] { return prefill.received().size() == 1; });
  EXPECT_EQ(prefill.body(0).at("max_tokens"), 1);
  const json::value from = sent.at("remote_prefiller");
  const json::value params = prefill.body(0).at("kv_transfer_params");
  EXPECT_EQ(params.at("remote_decoder").at("kv_request_id"), from.at("kv_request_id"));
  EXPECT_FALSE(params.as_object().contains("remote_prefiller"));
  EXPECT_EQ(from.at("remote_host"), "127.0.0.1");
  EXPECT_EQ(from.at("remote_port"), 7001);
  EXPECT_FALSE(from.at("kv_request_id").as_string().empty());
}

TEST_F(SidecarTest, SharedStoragePrefillsWhatIsNotCached) {
  Engine prefill(echo);
  Engine decode([](const http::Request& r) {
    const json::object body = json::parse(r.body).as_object();
    const bool full = body.contains("cache_hit_threshold") && body.at("cache_hit_threshold") != 0;
    const bool cached = !full || body.at("prompt") == "cached";
    const std::string choice = cached ? R"({"choices":[{"text":"a","finish_reason":null}]})"
                                      : R"({"choices":[{"text":"","finish_reason":"cache_threshold"}]})";
    if (!body.contains("stream")) return respond_with(choice);
    return streams(http::sse_event(R"({"choices":[{"text":""}]})") + http::sse_event(choice) +
                   http::sse_event("[DONE]"));
  });
  start(decode, {.connector = "shared-storage"});
  post(R"({"prompt":"a"})", prefill.address());
  EXPECT_EQ(prefill.received().size(), 1U) << "the prompt first";
  for (const std::string stream : {"", R"(,"stream":true)"}) {
    const std::size_t before = prefill.received().size();
    for (const std::string prompt : {"cached", "other"}) {
      const http::Response answer = post(
          R"({"prompt":")" + prompt + R"(","cache_hit_threshold":0.8)" + stream + "}", prefill.address());
      EXPECT_NE(answer.body.find("\"a\""), std::string::npos) << answer.body;
      EXPECT_EQ(answer.body.find("cache_threshold"), std::string::npos) << answer.body;
    }
    EXPECT_EQ(prefill.received().size(), before + 1);
    EXPECT_EQ(prefill.body(before).at("cache_hit_threshold"), 0);
    EXPECT_EQ(prefill.body(before).at("prompt"), "other");
  }
}

// The first event of each stream shows that the stream is an answer. The sidecar must forward this event
// while the engine still runs.
TEST_F(SidecarTest, SharedStorageHoldsNoStreamThatSaysSomething) {
  const auto chunk = [](std::string_view choice) {
    return "data: {\"choices\":[{\"index\":0," + std::string(choice) + "}]}\n\n";
  };
  for (const std::string& first :
       {std::string("event: message_start\ndata: {\"type\":\"message_start\"}\n\n"),
        chunk(R"("token_ids":[7])"), chunk(R"("delta":{"reasoning_content":"a"})"),
        chunk(R"("delta":{"tool_calls":[{"index":0}]})"), chunk(R"("text":"a")")}) {
    std::promise<std::shared_ptr<http::Exchange>> begun;
    const auto decode = *http::Server::start({}, [&](std::shared_ptr<http::Exchange> e) {
      e->start_stream({.content_type = "text/event-stream"});
      e->write(first + "data: {\"cho");  // first half of the next event
      begun.set_value(std::move(e));
    });
    SidecarOptions options{.decoder_url = fmt::format("http://127.0.0.1:{}", decode->port()),
                           .connector = "shared-storage"};
    sidecar_ = *Sidecar::start(std::move(options));
    http::Client client = *http::Client::connect({.port = sidecar_->port()});
    ASSERT_TRUE(client.open("POST", "/v1/completions",
                            R"({"prompt":"a","stream":true,"cache_hit_threshold":0.5})",
                            {{"x-prefiller-host-port", "127.0.0.1:9"}}));
    const auto stream = begun.get_future().get();
    std::string text = **client.read();
    EXPECT_TRUE(text.starts_with(first)) << text;
    stream->write("ices\":[]}\n\n");
    stream->finish();
    Result<std::optional<std::string>> piece;
    while ((piece = client.read()) && *piece) text += **piece;
    EXPECT_EQ(text, first + "data: {\"choices\":[]}\n\n");
  }
}

TEST_F(SidecarTest, AnEngineThatDoesNotAnswerIsTold) {
  Engine decode(echo);
  start(decode);
  decode.stop();
  EXPECT_EQ(post(kPrompt).status, 502);
}

TEST(Sidecar, MistakesNameTheField) {
  const auto field = [](SidecarOptions options) { return Sidecar::start(std::move(options)).error().field; };
  EXPECT_EQ(field({.decoder_url = "x"}), "decoder-url");
  EXPECT_EQ(field({.connector = "nonsense"}), "kv-connector");
  EXPECT_EQ(field({.allowed_prefillers = {"a:1"}}), "allowed-prefillers");
  EXPECT_EQ(field({.only_allowed = true, .allowed_prefillers = {"a/b"}}), "allowed-prefillers");
  EXPECT_EQ(field({.http = {.tls = {.certfile = "missing.pem"}}}), "tls-cert-path");
}

}  // namespace
}  // namespace octavo::fleet
