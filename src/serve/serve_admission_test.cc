// Tests admission and prices of requests with the whole server and FakeEngine.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <new>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

class AdmissionTest : public ServeTest {
 protected:
  // Allows twelve unfinished answers, and eight for each client.
  void serve_small(std::int64_t bytes = std::int64_t{1} << 30) {
    serve(
        [](const Request& r, int) { return Script{.tokens = bytes_of("xy"), .hang = r.sampling.seed == 1}; },
        [bytes](ServeOptions& o, http::ServerOptions&) {
          o.access.api_keys = {"a", "b"};
          o.admission.max_num_seqs = 4;
          o.admission.max_num_queued_reqs = 8;
          o.admission.request_bytes_max = bytes;
        });
  }
  http::Response post_as(const std::string& key, const std::string& path, const std::string& body) {
    return client()
        .request("POST", path, body,
                 {{"Content-Type", "application/json"}, {"Authorization", "Bearer " + key}})
        .value();
  }
  // Sends requests whose answers run until the client disconnects.
  http::Client hold(const std::string& key, int answers) {
    const int before = engine_->running();
    http::Client c = client();
    const std::string body = fmt::format(R"({{"prompt":"x","seed":1,"stream":true,"n":{}}})", answers);
    EXPECT_TRUE(
        c.send_raw(fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n"
                               "Content-Length: {}\r\n\r\n{}",
                               key, body.size(), body))
            .has_value());
    EXPECT_TRUE(eventually([&] { return engine_->running() > before; }));
    return c;
  }
  static std::string param(const http::Response& response) {
    const json::value value = json::parse(response.body).at("error").at("param");
    return value.is_string() ? std::string(value.as_string()) : "";
  }
};

TEST_F(AdmissionTest, WhatCanNeverBeAdmittedIsA400AndNothingOfItRuns) {
  serve_small();
  const http::Response refused = post_as("a", "/v1/completions", R"({"prompt":["a","b","c","d","e"],"n":2})");
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(param(refused), "n");
  EXPECT_THAT(refused.body, HasSubstr("at most 8"));
  EXPECT_EQ(post_as("a", "/v1/chat/completions", kChat + R"(,"n":9})").status, 400);
  EXPECT_EQ(engine_->submitted, 0);
  EXPECT_EQ(post_as("a", "/v1/completions", R"({"prompt":["a","b","c","d"],"n":2})").status, 200);
}

TEST_F(AdmissionTest, AClientThatFillsItsShareLeavesRoomForOthers) {
  serve_small();
  const http::Client held = hold("a", 6);
  // A request's prompts are admitted together or not at all.
  EXPECT_EQ(post_as("a", "/v1/completions", R"({"prompt":["a","b","c"]})").status, 429);
  EXPECT_EQ(engine_->submitted, 1);
  EXPECT_EQ(post_as("a", "/v1/completions", R"({"prompt":["a","b"]})").status, 200);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(post_as("b", "/v1/completions", R"({"prompt":["a","b","c","d","e","f"]})").status, 200);
}

TEST_F(AdmissionTest, PlacesComeBackWhenAClientGoes) {
  serve_small();
  {
    const http::Client held = hold("a", 8);
  }
  EXPECT_TRUE(eventually([&] {
    return post_as("a", "/v1/completions", R"({"prompt":["a","b","c","d"],"n":2})").status == 200;
  }));
}

TEST_F(AdmissionTest, LogprobsOfPromptsAreAPriceThatIsKnownBefore) {
  serve_small(1 << 20);
  const std::string prompt = R"({"prompt":")" + std::string(150, 'x') + "\"";
  for (const std::string requested : {R"(,"prompt_logprobs":20})", R"(,"echo":true,"logprobs":20})"}) {
    const http::Response refused = post_as("a", "/v1/completions", prompt + requested);
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_EQ(param(refused), "prompt_logprobs");
  }
  EXPECT_EQ(engine_->submitted, 0);
  EXPECT_EQ(post_as("a", "/v1/completions", prompt + R"(,"prompt_logprobs":2})").status, 200);
}

TEST_F(AdmissionTest, LogprobsOfAnswersArePaidForAsTheyCome) {
  serve([](const Request&,
           int) { return Script{.tokens = std::vector<TokenId>(100, 'x'), .tokens_per_step = 10}; },
        [](ServeOptions& o, http::ServerOptions&) { o.admission.request_bytes_max = 500'000; });
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"max_tokens":100,"logprobs":20})").status, 503);
  EXPECT_TRUE(eventually([&] {  // the reserved memory is free only after the engine has ended the first
                                // request
    return post("/v1/completions", kCompletion + R"(,"max_tokens":100,"logprobs":2})").status == 200;
  }));
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
}

TEST_F(AdmissionTest, MemoryThatRunsOutEndsOneRequest) {
  serve([](const Request& r, int) {
    if (r.sampling.seed == 1) throw std::bad_alloc();
    return Script{.tokens = ending("x")};
  });
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"seed":1})").status, 503);
  EXPECT_EQ(post("/v1/completions", kCompletion + "}").status, 200);
}

TEST_F(AdmissionTest, MemoryThatRunsOutForAQuestionIsItsFailure) {
  serve_text("x");
  engine_->out_of_memory = true;
  EXPECT_EQ(client().get("/metrics")->status, 503);
  engine_->out_of_memory = false;
  EXPECT_EQ(client().get("/metrics")->status, 200);
}

TEST_F(AdmissionTest, DetokenizeTakesOnlySoManyIds) {
  serve_text("x");
  std::string ids = "65";
  for (int i = 0; i < 1 << 20; ++i) ids += ",65";
  const http::Response refused = post("/detokenize", R"({"tokens":[)" + ids + "]}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(param(refused), "tokens");
}

// A gateway names the tenants in a header. Equal prompts of two tenants must have different cache salts.
TEST_F(AdmissionTest, TenantsByHeader) {
  serve([](const Request& r, int) { return Script{.tokens = bytes_of("xy"), .hang = r.sampling.seed == 1}; },
        [](ServeOptions& o, http::ServerOptions&) {
          o.admission.max_num_seqs = 4;
          o.admission.max_num_queued_reqs = 8;
          o.access.client_header = "X-Tenant";
          o.access.isolate_prefix_cache = true;
        });
  const auto salt = [&](const std::string& tenant, const std::string& more = "") {
    const std::string body = R"({"prompt":"x","max_tokens":1)" + more + "}";
    EXPECT_EQ(client()
                  .request("POST", "/v1/completions", body,
                           {{"Content-Type", "application/json"}, {"X-Tenant", tenant}})
                  .value()
                  .status,
              200);
    return engine_->last_request.identity.salt;
  };
  const std::string a = salt("a"), b = salt("b");
  EXPECT_NE(a, b);
  EXPECT_NE(a, "");
  EXPECT_EQ(salt("a"), a);
  EXPECT_NE(salt("a", R"(,"cache_salt":"own")"), a);
  EXPECT_NE(salt("a", R"(,"cache_salt":"own")"), salt("b", R"(,"cache_salt":"own")"));
  EXPECT_EQ(a.find("a@"), std::string::npos) << "the tenant's name is not told";

  // While one tenant has its maximum of eight answers, another tenant still gets answers.
  http::Client holding = client();
  const std::string body = R"({"prompt":"x","seed":1,"stream":true,"n":8})";
  ASSERT_TRUE(holding
                  .send_raw(fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Tenant: a\r\n"
                                        "Content-Length: {}\r\n\r\n{}",
                                        body.size(), body))
                  .has_value());
  ASSERT_TRUE(eventually([&] { return engine_->running() == 1; }));
  const auto status = [&](const std::string& tenant) {
    return client()
        .request("POST", "/v1/completions", R"({"prompt":"x"})",
                 {{"Content-Type", "application/json"}, {"X-Tenant", tenant}})
        .value();
  };
  const http::Response refused = status("a");
  EXPECT_EQ(refused.status, 429);
  EXPECT_GE(std::stoi(std::string(refused.headers.find("Retry-After").value_or("0"))), 1);
  EXPECT_EQ(refused.headers.count("Retry-After"), 1U);
  EXPECT_EQ(status("b").status, 200);
}

TEST_F(AdmissionTest, ARequestsTimeEndsIt) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("xy"), .hang = true}; });
  const http::Response whole = post("/v1/completions", R"({"prompt":"x","timeout":0.05})");
  EXPECT_EQ(whole.status, 503) << whole.body;
  EXPECT_THAT(whole.body, HasSubstr("timeout: the time limit of 0.05 s is over"));
  const http::Response stream =  // the answer begins before the timeout
      client()
          .request("POST", "/v1/completions", R"({"prompt":"x","stream":true})",
                   {{"Content-Type", "application/json"}, {"X-Request-Timeout", "4"}})
          .value();
  EXPECT_EQ(stream.status, 200);
  const auto all = events(stream);
  ASSERT_GE(all.size(), 2U);
  EXPECT_THAT(all[all.size() - 2], HasSubstr("timeout: the time limit of 4 s is over"));
  EXPECT_EQ(all.back(), "[DONE]");
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"x","timeout":0})").status, 400);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"x","timeout":1e9})").status, 400);
}

}  // namespace
}  // namespace octavo
