#include "fleet/pick/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fleet/pick/test_processor.h"
#include "http/testing/gzip.h"

namespace octavo::fleet {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST_F(ProcessorTest, AWholeRequestIsAnsweredHeadersFirstThenBody) {
  begin(1);
  ASSERT_TRUE(send(request_headers()));
  EXPECT_TRUE(answers_.empty());
  ASSERT_TRUE(send(request_body(kBody.substr(0, 5), false)));
  EXPECT_TRUE(answers_.empty());
  ASSERT_TRUE(send(request_body(kBody.substr(5))));
  ASSERT_EQ(answers_.size(), 2U);
  const auto headers = choice_headers();
  EXPECT_EQ(headers.at("x-gateway-destination-endpoint"), "10.0.0.1:8000");
  EXPECT_EQ(headers.at("content-length"), std::to_string(kBody.size()));
  EXPECT_EQ(headers.at("x-request-id").size(), 36U);
  EXPECT_TRUE(answers_[0].request_headers().response().clear_route_cache());
  const auto& load_balancer = answers_[0].dynamic_metadata().fields().at("envoy.lb").struct_value().fields();
  EXPECT_EQ(load_balancer.at("x-gateway-destination-endpoint").string_value(), "10.0.0.1:8000");
  EXPECT_FALSE(load_balancer.contains("x-gateway-destination-endpoint-scores"));
  const auto& streamed = answers_[1].request_body().response().body_mutation().streamed_response();
  EXPECT_EQ(streamed.body(), kBody);
  EXPECT_TRUE(streamed.end_of_stream());
}

TEST_F(ProcessorTest, ARequestKeepsItsId) {
  begin(1);
  ASSERT_TRUE(send(request_headers({{"x-request-id", "mine"}})));
  ASSERT_TRUE(send(request_body(kBody)));
  EXPECT_FALSE(choice_headers().contains("x-request-id"));
}

TEST_F(ProcessorTest, ALargeBodyGoesBackInPieces) {
  begin(1);
  const std::string body = R"({"model":"m","prompt":")" + std::string(150'000, 'x') + "\"}";
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(body)));
  ASSERT_EQ(answers_.size(), 4U);
  std::string together;
  for (std::size_t i = 1; i < answers_.size(); ++i) {
    const auto& streamed = answers_[i].request_body().response().body_mutation().streamed_response();
    EXPECT_LE(streamed.body().size(), 62'000U);
    EXPECT_EQ(streamed.end_of_stream(), i + 1 == answers_.size());
    together += streamed.body();
  }
  EXPECT_EQ(together, body);
}

TEST_F(ProcessorTest, TrailersEndABody) {
  begin(1);
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(kBody, false)));
  ProcessingRequest trailers;
  trailers.mutable_request_trailers();
  ASSERT_TRUE(send(trailers));
  ASSERT_EQ(answers_.size(), 3U);
  EXPECT_TRUE(answers_[0].has_request_headers());
  EXPECT_FALSE(answers_[1].request_body().response().body_mutation().streamed_response().end_of_stream());
  EXPECT_TRUE(answers_[2].has_request_trailers());
}

// Envoy sends the last piece twice for bodies above 1 MB (Gateway API Inference Extension, issue 2988).
TEST_F(ProcessorTest, TheLastPieceOfAStreamedBodyMayComeTwice) {
  begin(1);
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(kBody.substr(0, 20), false)));
  ASSERT_TRUE(send(request_body(kBody.substr(20))));
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_EQ(answers_[1].request_body().response().body_mutation().streamed_response().body(), kBody);
  for (const bool end : {true, false}) {
    ASSERT_TRUE(send(request_body(kBody.substr(20), end)));
    EXPECT_TRUE(answers_.empty()) << "the engine has the whole body already";
  }
  ASSERT_TRUE(send(response_body("{}", true)));
  EXPECT_EQ(answers_.size(), 1U);
}

TEST_F(ProcessorTest, ABufferedBodyIsAnsweredWithTheChoice) {
  begin(1);
  auto headers = request_headers();
  headers.mutable_protocol_config()->set_request_body_mode(ext_proc::BUFFERED);
  headers.mutable_protocol_config()->set_response_body_mode(ext_proc::BUFFERED);
  ASSERT_TRUE(send(headers));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(answers_[0].has_request_headers());
  ASSERT_TRUE(send(request_body(kBody)));
  ASSERT_EQ(answers_.size(), 1U);
  const auto& common = answers_[0].request_body().response();
  EXPECT_EQ(headers_of(common.header_mutation()).at("x-gateway-destination-endpoint"), "10.0.0.1:8000");
  EXPECT_FALSE(common.has_body_mutation());
  EXPECT_TRUE(common.clear_route_cache());
  ASSERT_TRUE(send(response_body("{}", true)));
  EXPECT_FALSE(answers_[0].response_body().response().has_body_mutation());
}

TEST_F(ProcessorTest, ARequestWithoutABodyGoesAnywhere) {
  begin(2);
  ASSERT_TRUE(send(request_headers({{":path", "/v1/models"}, {":method", "GET"}}, true)));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_THAT(choice_headers().at("x-gateway-destination-endpoint"), AnyOf("10.0.0.1:8000", "10.0.0.2:8000"));
}

TEST_F(ProcessorTest, ARequestWithoutABodyIs503WithoutEndpoints) {
  begin(0);
  ASSERT_TRUE(send(request_headers({}, true)));
  expect_refused(503, "failed to find endpoint candidates", "rejected-no-endpoints");
  begin(2);
  ASSERT_TRUE(send(with_subset(request_headers({}, true), {"10.0.0.9"})));
  expect_refused(503, "failed to find endpoint candidates", "rejected-no-endpoints");
}

TEST_F(ProcessorTest, TheHeadersOfARequestWithoutABodyCount) {
  const PipelineConfig testing{{{"", "header-based-testing-filter"}, {"", "random-picker"}},
                               {{"header-based-testing-filter"}, {"random-picker"}}};
  begin(3, {}, testing);
  for (int i = 0; i < 8; ++i) {
    next();
    ASSERT_TRUE(send(request_headers({{"test-epp-endpoint-selection", " 10.0.0.3:8000 , "}}, true)));
    EXPECT_EQ(choice_headers().at("x-gateway-destination-endpoint"), "10.0.0.3:8000");
  }
  next();
  ASSERT_TRUE(send(request_headers({{"test-epp-endpoint-selection", "10.0.0.3:1"}}, true)));
  EXPECT_FALSE(processor_->over()) << "all are filtered away: any will do";
}

TEST_F(ProcessorTest, BodiesThatAreNoneAreRefused) {
  begin(1);
  for (const auto& [body, text] : std::map<std::string, std::string>{
           {"{", "inference error: BadRequest - error unmarshaling request bodyMap: "},
           {"[]", "inference error: BadRequest - error unmarshaling request bodyMap: not an object"},
           {"", "error unmarshaling request bodyMap: "},
           {"{}", "inference error: BadRequest - model not found in request body"}}) {
    next();
    ASSERT_TRUE(send(request_headers()));
    ASSERT_TRUE(send(request_body(body)));
    expect_refused(400, text);
  }
  next();
  ASSERT_TRUE(send(request_headers({{":path", "/something/else"}})));
  ASSERT_TRUE(send(request_body("{")));
  EXPECT_FALSE(processor_->over());
}

TEST_F(ProcessorTest, BodiesHaveLimits) {
  begin(1, {.body_bytes_max = 100, .bodies_bytes_max = 150});
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(std::string(100, 'x'), false)));
  const auto first = std::move(processor_);  // still uses 100 bytes of the budget
  next();
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(std::string(60, 'x'), false)));
  expect_refused(503, "too many bytes");
  next();
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(std::string(101, 'x'), false)));
  expect_refused(413, "at most 100 bytes");
}

TEST_F(ProcessorTest, NobodyIs503) {
  begin(0);
  EXPECT_EQ(destination(), "");
  expect_refused(
      503, "inference error: ServiceUnavailable - failed to find endpoint candidates for serving the request",
      "rejected-no-endpoints");
}

TEST_F(ProcessorTest, TheGatewaysSubsetIsKept) {
  begin(3);
  for (const std::vector<std::string>& subset :
       {std::vector<std::string>{"10.0.0.2:8000"}, {"10.0.0.2"}, {" 10.0.0.2:8000 , 10.0.0.9:8000"}})
    for (int i = 0; i < 8; ++i) {
      next();
      EXPECT_EQ(destination(with_subset(request_body(kBody), subset)), "10.0.0.2:8000") << subset[0];
    }
  for (int i = 0; i < 8; ++i) {
    next();
    EXPECT_EQ(destination(with_subset_text(request_body(kBody), "10.0.0.1:1,  10.0.0.3:8000 ,")),
              "10.0.0.3:8000");
  }
  for (const std::vector<std::string>& nobody :
       {std::vector<std::string>{}, {"10.0.0.9:8000"}, {"10.0.0.2:1"}, {" , "}}) {
    next();
    EXPECT_EQ(destination(with_subset(request_body(kBody), nobody)), "");
    expect_refused(503, "failed to find endpoint candidates", "rejected-no-endpoints");
  }
  begin(3, {.subset_filter = false});
  EXPECT_NE(destination(with_subset(request_body(kBody), {})), "");
}

// Some gateways send the subset only with the headers. Others, such as Envoy, send it with each message.
TEST_F(ProcessorTest, ASubsetThatComesWithTheHeadersCounts) {
  begin(3);
  for (int i = 0; i < 8; ++i) {
    next();
    ASSERT_TRUE(send(with_subset_text(request_headers(), "10.0.0.2:8000")));
    ASSERT_TRUE(send(request_body(kBody)));
    EXPECT_EQ(choice_headers().at("x-gateway-destination-endpoint"), "10.0.0.2:8000");
  }
}

TEST_F(ProcessorTest, ASubsetOfPrimaryPortsAllowsAllRanksOfThem) {
  begin(3, {.primary_port = 7000});
  for (int i = 0; i < 8; ++i) {
    next();
    ASSERT_EQ(destination(with_subset(request_body(kBody), {"10.0.0.2:7000"})), "10.0.0.2:7000");
    EXPECT_EQ(choice_headers().at("x-data-parallel-host-port"), "10.0.0.2:8000");
  }
}

TEST_F(ProcessorTest, AnswersNameTheEndpointThatServedThem) {
  begin(1, {.reports_served = true});
  const auto counted_events = [&](std::string served) {
    next();
    EXPECT_NE(destination(), "");
    ProcessingRequest message;
    message.mutable_response_headers();
    if (!served.empty()) {
      auto& balancer = (*message.mutable_metadata_context()->mutable_filter_metadata())["envoy.lb"];
      (*balancer.mutable_fields())["x-gateway-destination-endpoint-served"].set_string_value(served);
    }
    CHECK(send(message));
    return headers_of(answers_[0].response_headers().response().header_mutation())
        .at("x-conformance-test-served-endpoint");
  };
  EXPECT_EQ(counted_events("10.0.0.1:8000"), "10.0.0.1:8000");
  EXPECT_THAT(counted_events(""), HasSubstr("fail: "));
}

TEST_F(ProcessorTest, FallbacksAndScoresAreTold) {
  begin(3, {.emit_scores = true},
        {{{"", "active-request-scorer"}, {"", "max-score-picker", {{"maxNumOfEndpoints", 2}}}},
         {{"active-request-scorer", 5}, {"max-score-picker"}}});
  const std::string both = destination();
  EXPECT_EQ(both.size(), std::string("10.0.0.1:8000,10.0.0.1:8000").size());
  const auto& scores = answers_[0]
                           .dynamic_metadata()
                           .fields()
                           .at("envoy.lb")
                           .struct_value()
                           .fields()
                           .at("x-gateway-destination-endpoint-scores")
                           .struct_value()
                           .fields();
  EXPECT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores.at(both.substr(0, both.find(','))).number_value(), 5);
}

TEST_F(ProcessorTest, ARequestCountsAsInFlightUntilItsAnswerEnds) {
  begin(2);
  const std::string first = destination();
  const auto open = std::move(processor_);
  for (int i = 0; i < 8; ++i) {
    next();
    EXPECT_NE(destination(), first) << "each one before has ended with its stream, but the first is open";
  }
  std::vector<ProcessingResponse> ignored;
  ASSERT_TRUE(open->process(response_body("{}", true), ignored));
  std::map<std::string, int> picked;
  for (int i = 0; i < 64; ++i) {
    next();
    ++picked[destination()];
  }
  EXPECT_EQ(picked.size(), 2U);
}

// A prefill endpoint computes a long prompt that the picked endpoint has not cached.
TEST_F(ProcessorTest, APromptIsComputedApart) {
  constexpr std::string_view kPrefiller = "x-prefiller-host-port";
  PipelineConfig pipeline{{{"", "active-request-scorer"}, {"", "random-picker"}, {"", "prefix-cache-scorer"}},
                          {{"active-request-scorer"}, {"prefix-cache-scorer"}}};
  pipeline.prefill = PrefillRule{.steps = {{"active-request-scorer"}}, .new_tokens = 100};
  begin(2, {}, pipeline);
  const std::string body = R"({"model":"m","prompt":")" + std::string(2000, 'x') + "\"}";
  const std::string home = destination(request_body(body));
  const std::string other = home == "10.0.0.1:8000" ? "10.0.0.2:8000" : "10.0.0.1:8000";
  EXPECT_EQ(choice_headers().at(std::string(kPrefiller)), other) << "it has nothing in flight";
  next();
  // Clients cannot choose the prefill endpoint. A short prompt has none.
  ASSERT_TRUE(send(request_headers({{std::string(kPrefiller), "10.9.9.9:80"}})));
  ASSERT_TRUE(send(request_body(kBody)));
  EXPECT_FALSE(choice_headers().contains(std::string(kPrefiller)));
  const auto& mutation = answers_[0].request_headers().response().header_mutation();
  EXPECT_THAT(mutation.remove_headers(), testing::ElementsAre(std::string(kPrefiller)));
  next();
  destination(request_body(body));
  EXPECT_FALSE(choice_headers().contains(std::string(kPrefiller))) << "it is known there";
}

TEST_F(ProcessorTest, ImagesAreEncodedApart) {
  PipelineConfig pipeline{{{"", "active-request-scorer"}}, {{"active-request-scorer"}}};
  pipeline.encode = std::vector<StepConfig>{{"active-request-scorer"}};
  begin(2, {}, pipeline);
  const std::string home = destination(request_body(
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]})"));
  EXPECT_THAT(choice_headers().at("x-encoder-hosts-ports"), AnyOf("10.0.0.1:8000", "10.0.0.2:8000"));
  next();
  destination(request_body(kBody));
  EXPECT_FALSE(choice_headers().contains("x-encoder-hosts-ports")) << "there is no image";
}

TEST_F(ProcessorTest, ARankIsNamedAndItsPodsPortAsked) {
  begin(1, {.primary_port = 9000});
  EXPECT_EQ(destination(), "10.0.0.1:9000");
  EXPECT_EQ(choice_headers().at("x-data-parallel-host-port"), "10.0.0.1:8000");
}

TEST_F(ProcessorTest, ARankOfASharedPortIsNamedToItsEngine) {
  begin(1);
  const Member& first = balancer_->view()->members.front();
  balancer_->set_ranks(first.id, *first.endpoint, 2);
  std::vector<Scrape> scrapes;
  const auto view = balancer_->view();
  for (const Member& member : view->members) scrapes.push_back({.endpoint = member.id, .answered = true});
  balancer_->scraped(std::move(scrapes));
  std::set<std::string> ranks;
  std::vector<std::unique_ptr<Processor>> running;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(destination(), "10.0.0.1:8000");
    ranks.insert(choice_headers().at("x-data-parallel-rank"));
    running.push_back(std::move(processor_));
    next();
  }
  EXPECT_EQ(ranks, (std::set<std::string>{"0", "1"})) << "each has a load of its own";
  ASSERT_TRUE(send(request_headers({{"x-data-parallel-rank", "1"}})));
  ASSERT_TRUE(send(request_body(kBody)));
  EXPECT_FALSE(choice_headers().contains("x-data-parallel-rank")) << "the client's counts";
}

TEST_F(ProcessorTest, AnAnswerPassesThroughAndIsCounted) {
  begin(1);
  ASSERT_EQ(destination(), "10.0.0.1:8000");
  ProcessingRequest headers;
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{":status", "200"}, {"content-type", "text/event-stream"}}) {
    auto& header = *headers.mutable_response_headers()->mutable_headers()->add_headers();
    header.set_key(key);
    header.set_value(value);  // old gateways use this field
  }
  ASSERT_TRUE(send(headers));
  for (const std::string piece : {"data: {\"choices\":[]}\n\n",
                                  "data: {\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":9}}\n\n"}) {
    ASSERT_TRUE(send(response_body(piece, false)));
    const auto& streamed = answers_.at(0).response_body().response().body_mutation().streamed_response();
    EXPECT_EQ(streamed.body(), piece);
    EXPECT_FALSE(streamed.end_of_stream());
  }
  EXPECT_EQ(metric("llm_d_epp_extproc_streams_inflight"), "1");
  ASSERT_TRUE(send(response_body("", true)));
  EXPECT_TRUE(answers_.at(0).response_body().response().body_mutation().streamed_response().end_of_stream());
  EXPECT_EQ(metric("llm_d_epp_request_total{model_name=\"m\",target_model_name=\"m\"}"), "1");
  EXPECT_EQ(metric("llm_d_epp_request_input_tokens_sum"), "4");
  EXPECT_EQ(metric("llm_d_epp_request_output_tokens_sum"), "9");
  processor_.reset();
  EXPECT_EQ(metric("llm_d_epp_extproc_streams_inflight"), "0");
  EXPECT_EQ(metric("llm_d_epp_request_total{model_name=\"m\",target_model_name=\"m\"}"), "1");
}

TEST_F(ProcessorTest, WhatIsNotTheProtocolEndsTheStream) {
  begin(1);
  EXPECT_EQ(send(request_body("x")).error().field, "request_body");
  EXPECT_EQ(send({}).error().field, "request");
  ASSERT_TRUE(send(request_headers()));
  EXPECT_EQ(send(request_headers()).error().field, "request_headers");
  ASSERT_TRUE(send(request_body(kBody)));
  next();
  auto buffered = request_headers();
  buffered.mutable_protocol_config()->set_request_body_mode(ext_proc::BUFFERED);
  ASSERT_TRUE(send(buffered));
  ASSERT_TRUE(send(request_body(kBody)));
  EXPECT_EQ(send(request_body(kBody)).error().field, "request_body");
  next();
  auto streamed = request_headers();
  streamed.mutable_protocol_config()->set_request_body_mode(ext_proc::STREAMED);
  EXPECT_EQ(send(streamed).error().field, "request_body_mode");
}

TEST_F(ProcessorTest, AnEndpointThatDoesNotAnswerIsNotPicked) {
  begin(2);
  const EndpointId missing = balancer_->view()->find("10.0.0.1:8000")->id;
  for (int i = 0; i < 3; ++i) balancer_->scraped({{.endpoint = missing, .answered = false}});
  for (int i = 0; i < 8; ++i) {
    next();
    EXPECT_EQ(destination(), "10.0.0.2:8000");
  }
  balancer_->scraped({{.endpoint = missing, .answered = true}});
  EXPECT_EQ(metric("llm_d_epp_ready_endpoints"), "2");
}

TEST_F(ProcessorTest, AnEndpointMayGoWhileItAnswers) {
  begin(1);
  ASSERT_EQ(destination(), "10.0.0.1:8000");
  balancer_->set_endpoints({});
  EXPECT_TRUE(balancer_->view()->members.empty());
  balancer_->set_endpoints({{.name = "10.0.0.2:8000", .url = "http://10.0.0.2:8000"}});
  ASSERT_TRUE(send(response_body("{}", true)));
  EXPECT_EQ(balancer_->view()->members.size(), 1U);
}

TEST_F(ProcessorTest, AClientThatSendsTheAnswersTokenStaysThere) {
  begin(3, {},
        {{{"", "session-affinity-filter"}, {"", "random-picker"}},
         {{"session-affinity-filter"}, {"random-picker"}}});
  std::map<std::string, std::string> headers;
  std::string home;
  for (int turn = 0; turn < 8; ++turn) {
    next();
    ASSERT_TRUE(send(request_headers(headers)));
    ASSERT_TRUE(send(request_body(kBody)));
    const std::string chosen = choice_headers().at("x-gateway-destination-endpoint");
    if (turn == 0) home = chosen;
    EXPECT_EQ(chosen, home);
    ProcessingRequest answer;
    answer.mutable_response_headers();
    ASSERT_TRUE(send(answer));
    for (const auto& option : answers_.at(0).response_headers().response().header_mutation().set_headers())
      if (option.header().key() == "x-session-token")
        headers["x-session-token"] = option.header().raw_value();
    ASSERT_TRUE(headers.contains("x-session-token"));
  }
}

TEST_F(ProcessorTest, AModelGoesOutUnderAnotherNameAndComesBackUnderItsOwn) {
  begin(1, {.rules = {.rewrites = {{.created = "1", .name = "r", .rules = {{{"m"}, {{"tuned", 1}}}}}}}});
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(kBody)));
  const std::string sent = R"({"model":"tuned","prompt":"Once upon a time"})";
  EXPECT_EQ(answers_.at(1).request_body().response().body_mutation().streamed_response().body(), sent);
  EXPECT_EQ(choice_headers().at("content-length"), std::to_string(sent.size()));
  ASSERT_TRUE(send(response_body(R"({"model":"tun)", false)));
  std::string got = answers_.at(0).response_body().response().body_mutation().streamed_response().body();
  ASSERT_TRUE(send(response_body(R"(ed","id":1})", true)));
  got += answers_.at(0).response_body().response().body_mutation().streamed_response().body();
  EXPECT_EQ(got, R"({"model":"m","id":1})");
  EXPECT_EQ(metric("llm_d_epp_request_total{model_name=\"m\",target_model_name=\"tuned\"}"), "1");
}

TEST_F(ProcessorTest, CompressedBodiesAreExpanded) {
  begin(1, {.body_bytes_max = 1 << 10});
  for (const char* coding : {"gzip", "deflate"}) {
    next();
    ASSERT_TRUE(send(request_headers({{"content-encoding", coding}})));
    ASSERT_TRUE(send(request_body(http::gzip(kBody))));
    const auto& mutation = answers_.at(0).request_headers().response().header_mutation();
    EXPECT_THAT(mutation.remove_headers(), testing::Contains("content-encoding"));
    EXPECT_EQ(choice_headers().at("content-length"), std::to_string(kBody.size()));
    EXPECT_EQ(answers_.at(1).request_body().response().body_mutation().streamed_response().body(), kBody);
  }
  EXPECT_EQ(metric("llm_d_epp_request_total{model_name=\"m\",target_model_name=\"m\"}"), "1");
  const auto refused = [&](std::string_view body, int status, std::string_view text) {
    next();
    ASSERT_TRUE(send(request_headers({{"content-encoding", "gzip"}})));
    ASSERT_TRUE(send(request_body(body)));
    expect_refused(status, text);
  };
  refused(kBody, 400, "Content-Encoding");
  refused(http::gzip(std::string(2000, ' ')), 413, "at most 1024 bytes");
}

TEST_F(ProcessorTest, TheRequestsOwnRewriteGoesBeforeTheClusters) {
  begin(1, {.rules = {.rewrites = {{.created = "1", .name = "r", .rules = {{{}, {{"tuned", 1}}}}}}}});
  ASSERT_TRUE(send(request_headers({{"x-gateway-model-name-rewrite", "own"}})));
  ASSERT_TRUE(send(request_body(kBody)));
  EXPECT_EQ(answers_.at(1).request_body().response().body_mutation().streamed_response().body(),
            R"({"model":"own","prompt":"Once upon a time"})");
}

TEST_F(ProcessorTest, APathThatNoParserTakesIsRefusedWhereNothingPassesThrough) {
  begin(1, {.parsers = {.anthropic = false, .passthrough = false}});
  ASSERT_TRUE(send(request_headers({{":path", "/v1/messages"}})));
  ASSERT_TRUE(send(request_body(kBody)));
  expect_refused(400, "no parser takes the path /v1/messages");
}

}  // namespace
}  // namespace octavo::fleet
