#include "fleet/pick/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>

#include "base/check.h"
#include "base/clock.h"
#include "ext_proc.pb.h"

namespace octavo::fleet {
namespace {

using ext_proc::ProcessingRequest;
using ext_proc::ProcessingResponse;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::string_view kBody = R"({"model":"m","prompt":"Once upon a time"})";

// A picker over endpoints that answer, and one request to it.
class ProcessorTest : public testing::Test {
 protected:
  // Endpoints 10.0.0.1:8000, 10.0.0.2:8000, ...
  void begin(int endpoints, ProcessorOptions options = {},
             PipelineConfig pipeline = {{{"", "active-request-scorer"}}, {{"active-request-scorer"}}}) {
    processor_.reset();
    auto made =
        Balancer::make({.pools = {{.pipeline = std::move(pipeline)}}, .probes = {.success_threshold = 1}});
    CHECK(made);
    balancer_ = *std::move(made);
    context_ = std::make_unique<ProcessorContext>(*balancer_, options);
    std::vector<Endpoint> all;
    for (int i = 1; i <= endpoints; ++i) {
      const std::string name = fmt::format("10.0.0.{}:8000", i);
      all.push_back({.name = name, .url = "http://" + name});
    }
    balancer_->set_endpoints(std::move(all));
    std::vector<Scrape> scrapes;
    const auto view = balancer_->view();
    for (const Member& member : view->members) scrapes.push_back({.endpoint = member.id, .answered = true});
    balancer_->scraped(std::move(scrapes));
    next();
  }
  void next() { processor_ = std::make_unique<Processor>(*context_); }

  Result<> send(const ProcessingRequest& message) {
    answers_.clear();
    return processor_->process(message, answers_);
  }

  static ProcessingRequest request_headers(std::map<std::string, std::string> headers = {},
                                           bool end = false) {
    ProcessingRequest message;
    headers.try_emplace(":path", "/v1/completions?x=1");
    headers.try_emplace(":method", "POST");
    for (const auto& [key, value] : headers) {
      auto& header = *message.mutable_request_headers()->mutable_headers()->add_headers();
      header.set_key(key);
      header.set_raw_value(value);
    }
    message.mutable_request_headers()->set_end_of_stream(end);
    return message;
  }
  static ProcessingRequest request_body(std::string_view piece, bool end = true) {
    ProcessingRequest message;
    message.mutable_request_body()->set_body(std::string(piece));
    message.mutable_request_body()->set_end_of_stream(end);
    return message;
  }
  static ProcessingRequest response_body(std::string_view piece, bool end) {
    ProcessingRequest message;
    message.mutable_response_body()->set_body(std::string(piece));
    message.mutable_response_body()->set_end_of_stream(end);
    return message;
  }
  static ProcessingRequest with_subset(ProcessingRequest message, std::vector<std::string> addresses) {
    auto& hint = (*message.mutable_metadata_context()->mutable_filter_metadata())["envoy.lb.subset_hint"];
    auto& list = *(*hint.mutable_fields())["x-gateway-destination-endpoint-subset"].mutable_list_value();
    for (std::string& address : addresses) list.add_values()->set_string_value(std::move(address));
    return message;
  }
  static ProcessingRequest with_subset_text(ProcessingRequest message, std::string text) {
    auto& hint = (*message.mutable_metadata_context()->mutable_filter_metadata())["envoy.lb.subset_hint"];
    (*hint.mutable_fields())["x-gateway-destination-endpoint-subset"].set_string_value(std::move(text));
    return message;
  }

  static std::map<std::string, std::string> headers_of(const ext_proc::HeaderMutation& mutation) {
    std::map<std::string, std::string> headers;
    for (const auto& option : mutation.set_headers()) {
      EXPECT_TRUE(option.header().value().empty()) << "raw_value is what counts";
      EXPECT_EQ(option.append_action(), ext_proc::OVERWRITE_IF_EXISTS_OR_ADD);
      headers[option.header().key()] = option.header().raw_value();
    }
    return headers;
  }
  std::map<std::string, std::string> choice_headers() const {
    return headers_of(answers_.at(0).request_headers().response().header_mutation());
  }
  // Where a whole request with kBody goes; "" when it is refused.
  std::string destination(const ProcessingRequest& last = request_body(kBody)) {
    CHECK(send(request_headers()));
    CHECK(send(last));
    return answers_.at(0).has_request_headers() ? choice_headers().at("x-gateway-destination-endpoint") : "";
  }
  void expect_refused(int status, std::string_view text, std::string_view reason = "") {
    ASSERT_EQ(answers_.size(), 1U);
    const auto& refused = answers_[0].immediate_response();
    EXPECT_EQ(refused.status().code(), status);
    EXPECT_THAT(refused.body(), HasSubstr(std::string(text)));
    const auto headers = headers_of(refused.headers());
    EXPECT_EQ(headers.contains("x-llm-d-request-dropped-reason")
                  ? headers.at("x-llm-d-request-dropped-reason")
                  : "",
              reason);
    EXPECT_TRUE(processor_->over());
  }
  std::string metric(const std::string& name) const {
    const std::string text = context_->metrics.text(*balancer_->view());
    const std::size_t at = text.find("\n" + name + " ");
    CHECK(at != std::string::npos, "{}", name);
    const std::size_t begin = at + name.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  std::unique_ptr<Balancer> balancer_;
  std::unique_ptr<ProcessorContext> context_;
  std::unique_ptr<Processor> processor_;
  std::vector<ProcessingResponse> answers_;
};

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
  const auto first = std::move(processor_);  // holds 100 bytes
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

// Gateways tell it with the headers, those like Envoy with each message.
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
  begin(1, {.tells_served = true});
  const auto told = [&](std::string served) {
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
  EXPECT_EQ(told("10.0.0.1:8000"), "10.0.0.1:8000");
  EXPECT_THAT(told(""), HasSubstr("fail: "));
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

// A prompt that the chosen endpoint does not hold is computed by another one, once it is long enough.
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
  // Clients cannot choose the prefill endpoint, and a short prompt is not sent to one.
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

TEST_F(ProcessorTest, AnAnswerPassesThroughAndIsCounted) {
  begin(1);
  ASSERT_EQ(destination(), "10.0.0.1:8000");
  ProcessingRequest headers;
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{":status", "200"}, {"content-type", "text/event-stream"}}) {
    auto& header = *headers.mutable_response_headers()->mutable_headers()->add_headers();
    header.set_key(key);
    header.set_value(value);  // gateways that are old send this one
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
  EXPECT_EQ(send(request_body(kBody)).error().field, "request_body");
  next();
  auto streamed = request_headers();
  streamed.mutable_protocol_config()->set_request_body_mode(ext_proc::STREAMED);
  EXPECT_EQ(send(streamed).error().field, "request_body_mode");
}

TEST_F(ProcessorTest, AnEndpointThatDoesNotAnswerIsNotPicked) {
  begin(2);
  const EndpointId gone = balancer_->view()->find("10.0.0.1:8000")->id;
  for (int i = 0; i < 3; ++i) balancer_->scraped({{.endpoint = gone, .answered = false}});
  for (int i = 0; i < 8; ++i) {
    next();
    EXPECT_EQ(destination(), "10.0.0.2:8000");
  }
  balancer_->scraped({{.endpoint = gone, .answered = true}});
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

TEST_F(ProcessorTest, ARequestWaitsForItsTurn) {
  ProcessorOptions options{.rules = {.objectives = {{"chat", 10}}},
                           .flow = FlowGateOptions{.flow = {.bands = {{10, {.requests_max = 1}}}},
                                                   .detector = ConcurrencyDetector{.requests_max = 1}}};
  begin(1, options);
  const std::map<std::string, std::string> chat{{"x-llm-d-inference-objective", "chat"}};
  // Sends all of a request, which then waits.
  const auto begin_to_wait = [&](Processor& processor, std::promise<void>& resumed) {
    std::vector<ProcessingResponse> none;
    CHECK(processor.process(request_headers(chat), none));
    CHECK(processor.process(request_body(kBody), none));
    EXPECT_TRUE(none.empty());
    EXPECT_TRUE(processor.waits());
    processor.wait([&] { resumed.set_value(); });
  };
  const auto go_on = [&](Processor& processor, std::promise<void>& resumed) {
    resumed.get_future().wait();
    answers_.clear();
    processor.go_on(answers_);
    EXPECT_FALSE(processor.waits());
  };
  std::promise<void> promises[4];
  Processor first(*context_), second(*context_), third(*context_), cancelled(*context_);
  begin_to_wait(first, promises[0]);
  go_on(first, promises[0]);
  EXPECT_EQ(choice_headers().at("x-gateway-destination-endpoint"), "10.0.0.1:8000");
  begin_to_wait(second, promises[1]);
  begin_to_wait(third, promises[2]);
  go_on(third, promises[2]);  // the band of chats has room for one
  EXPECT_EQ(answers_.at(0).immediate_response().status().code(), 429);
  std::vector<ProcessingResponse> rest;
  CHECK(first.process(response_body("{}", true), rest));
  go_on(second, promises[1]);
  EXPECT_EQ(choice_headers().at("x-gateway-destination-endpoint"), "10.0.0.1:8000");
  begin_to_wait(cancelled, promises[3]);
  cancelled.cancel();
  go_on(cancelled, promises[3]);
  EXPECT_EQ(answers_.at(0).immediate_response().status().code(), 503);
}

TEST_F(ProcessorTest, ARunningRequestEndsForOneOfAHigherPriority) {
  begin(1, {.rules = {.objectives = {{"batch", -1}}},
            .flow = FlowGateOptions{.detector = ConcurrencyDetector{.requests_max = 1}, .evicts = true}});
  const auto start = [&](Processor& processor, const char* objective, std::promise<void>& resumed) {
    std::vector<ProcessingResponse> none;
    CHECK(processor.process(request_headers({{"x-llm-d-inference-objective", objective}}), none));
    CHECK(processor.process(request_body(kBody), none));
    processor.wait([&] { resumed.set_value(); });
  };
  Processor batch(*context_), chat(*context_);
  std::promise<void> goes, evicted, follows;
  start(batch, "batch", goes);
  goes.get_future().wait();
  EXPECT_FALSE(batch.begins());
  batch.go_on(answers_);
  ASSERT_TRUE(batch.begins());
  batch.evictable([&] { evicted.set_value(); });
  EXPECT_FALSE(batch.begins());
  start(chat, "chat", follows);
  evicted.get_future().wait();
  answers_.clear();
  batch.evict(answers_);
  ASSERT_EQ(answers_.size(), 1U);
  const auto& immediate = answers_[0].immediate_response();
  EXPECT_EQ(immediate.status().code(), 429);
  EXPECT_EQ(immediate.body(), "request evicted by flow control");
  EXPECT_EQ(headers_of(immediate.headers()).at("x-llm-d-request-dropped-reason"), "evicted");
  EXPECT_TRUE(batch.over());
  batch.evict(answers_);
  EXPECT_EQ(answers_.size(), 1U) << "once";
  follows.get_future().wait();
  answers_.clear();
  chat.go_on(answers_);
  EXPECT_EQ(choice_headers().at("x-gateway-destination-endpoint"), "10.0.0.1:8000");
  EXPECT_THAT(context_->gate->metrics(), HasSubstr("octavo_pick_flow_control_evictions_total 1"));
}

TEST_F(ProcessorTest, AClientThatLeavesBeforeItsRequestWaitsIsNotWaitedFor) {
  begin(1, {.flow = FlowGateOptions{.detector = ConcurrencyDetector{.requests_max = 1}}});
  ASSERT_TRUE(balancer_->choose({}, {})) << "takes the only place";
  ASSERT_TRUE(send(request_headers()));
  ASSERT_TRUE(send(request_body(kBody)));
  ASSERT_TRUE(processor_->waits());
  processor_->cancel();
  bool resumed = false;
  processor_->wait([&] { resumed = true; });
  EXPECT_TRUE(resumed);
  context_->gate->stop();  // notifies waiting requests before `resumed` is destroyed
}

TEST_F(ProcessorTest, RequestsOfAMomentWithOnePromptGoToOneEndpoint) {
  begin(3, {},
        {{{"", "burst-prefix-cache-producer", {{"windowDurationMs", 500}}},
          {"", "prefix-cache-scorer", {{"prefixMatchInfoProducerName", "burst-prefix-cache-producer"}}}},
         {{"prefix-cache-scorer"}}});
  http::AsyncClient client({.threads = 1});
  context_->bursts = std::make_unique<BurstGate>(*balancer_, client.next_loop());
  constexpr std::string_view kOther = R"({"model":"m","prompt":"another"})";
  const std::string_view bodies[] = {kBody, kOther, kBody, kOther, kBody};
  std::vector<std::unique_ptr<Processor>> processors;
  std::promise<void> resumed[std::size(bodies)];
  for (std::size_t i = 0; i < std::size(bodies); ++i) {
    next();
    ASSERT_TRUE(send(request_headers()));
    ASSERT_TRUE(send(request_body(bodies[i])));
    ASSERT_TRUE(processor_->waits());
    processor_->wait([&, i] { resumed[i].set_value(); });
    processors.push_back(std::move(processor_));
  }
  std::vector<std::string> homes;
  for (std::size_t i = 0; i < std::size(bodies); ++i) {
    resumed[i].get_future().wait();
    answers_.clear();
    processors[i]->go_on(answers_);
    homes.push_back(choice_headers().at("x-gateway-destination-endpoint"));
  }
  const std::string &first = homes[0], &other = homes[1];
  EXPECT_NE(first, other);
  EXPECT_THAT(homes, testing::ElementsAre(first, other, first, other, first));
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

// Who has answered is known to keep a limit that everybody keeps, who has not is not.
TEST_F(ProcessorTest, WhoHoldsMoreOfAPromptIsNamedToWhoComputesIt) {
  constexpr std::string_view kSource = "x-kv-cache-source-host-port";
  begin(2, {}, {{{"", "p2p-source-producer"}, {"", "active-request-scorer"}}, {{"active-request-scorer"}}});
  const std::string body = R"({"model":"m","prompt":")" + std::string(2000, 'x') + R"("})";
  CHECK(send(request_headers({{std::string(kSource), "10.9.9.9:1"}})));
  CHECK(send(request_body(body)));
  const std::string first = choice_headers().at("x-gateway-destination-endpoint");
  EXPECT_FALSE(choice_headers().contains(std::string(kSource)));
  const auto& removed = answers_.at(0).request_headers().response().header_mutation().remove_headers();
  EXPECT_THAT(removed, testing::Contains(std::string(kSource))) << "it is not the client's to say";
  const auto busy = std::move(processor_);
  next();
  CHECK(send(request_headers()));
  CHECK(send(request_body(body)));
  EXPECT_NE(choice_headers().at("x-gateway-destination-endpoint"), first) << "that one is busy";
  EXPECT_EQ(choice_headers().at(std::string(kSource)), first);
}

TEST_F(ProcessorTest, HowBusyGpusAreIsKnownBesideEnginesOwnMetrics) {
  begin(2);
  const AttributeKey busy{"GPUUtilization", "dcgm-extractor"}, depth{"depth", "core-metrics-extractor"};
  const EndpointId id = balancer_->view()->members.at(0).id;
  EndpointState read;
  read.waiting = 3;
  read.attributes = std::make_shared<const Attributes>(Attributes{{depth, 7}});
  balancer_->scraped(
      {{.endpoint = id, .answered = true, .state = read}, {.endpoint = id, .attributes = {{busy, 0.5}}}});
  read.attributes.reset();
  read.waiting = 4;
  balancer_->scraped({{.endpoint = id, .answered = true, .state = read}});
  const auto view = balancer_->view();
  const EndpointState& state = view->members.at(0).state;
  EXPECT_EQ(state.waiting, 4);
  EXPECT_EQ(state.attribute(busy), 0.5);
  EXPECT_EQ(state.attribute(depth), 7);
  EXPECT_EQ(state.availability, Availability::available);
}

TEST_F(ProcessorTest, LatenciesAreLearntFromAnswers) {
  begin(2, {},
        {{{"", "slo-headroom-tier-filter", {{"epsilonExploreNeg", 0}}}, {"", "random-picker"}},
         {{"slo-headroom-tier-filter"}, {"random-picker"}}});
  const auto ask = [&](std::vector<std::string> subset) {
    next();
    CHECK(send(request_headers({{"x-slo-ttft-ms", "1000000"}})));
    CHECK(send(subset.empty() ? request_body(kBody) : with_subset(request_body(kBody), subset)));
    return choice_headers().at("x-gateway-destination-endpoint");
  };
  for (int i = 0; i < 18; ++i) {
    EXPECT_EQ(ask({"10.0.0.2"}), "10.0.0.2:8000");
    ProcessingRequest headers;
    auto& status = *headers.mutable_response_headers()->mutable_headers()->add_headers();
    status.set_key(":status");
    status.set_raw_value("200");
    CHECK(send(headers));
    CHECK(send(response_body("{}", true)));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask({}), "10.0.0.2:8000");
}

std::unique_ptr<Balancer> picker_of(PipelineConfig pipeline) {
  return *Balancer::make({.pools = {{.pipeline = std::move(pipeline)}}, .probes = {.success_threshold = 1}});
}

TEST(PickPolicy, AnAdmitterRefuses) {
  const auto picker = picker_of(
      {.plugins = {{"", "random-picker"}, {"", "probabilistic-admitter"}}, .steps = {{"random-picker"}}});
  picker->set_endpoints({{.name = "10.0.0.1:8000", .url = "http://10.0.0.1:8000"}});
  picker->scraped({{.endpoint = 0, .answered = true}});
  EXPECT_TRUE(picker->choose({}, {}));
  const auto refused = picker->choose({}, {.priority = -1});
  ASSERT_FALSE(refused) << "nothing is known of its load";
  EXPECT_EQ(refused.error().status, 500);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr("request cannot be admitted: inference error: ResourceExhausted - probabilistic-admitter"));
}

TEST(PickPolicy, AnEndpointThatStartsAnewBetweenTwoReadingsHoldsNothing) {
  const auto picker =
      picker_of({.plugins = {{"", "approx-prefix-cache-producer"}, {"", "prefix-cache-scorer"}},
                 .steps = {{"prefix-cache-scorer"}}});
  picker->set_endpoints({{.name = "10.0.0.1:8000"}, {.name = "10.0.0.2:8000"}});
  const auto read = [&](EndpointId id, double prompt_tokens) {
    picker->scraped(
        {{.endpoint = id, .answered = true, .state = EndpointState{.prompt_tokens = prompt_tokens}}});
  };
  for (const EndpointId id : {0U, 1U}) read(id, 100);
  const RouteRequest request{.tokens = std::vector<std::uint32_t>(256, 7)};
  EndpointId chosen = kNoEndpoint;
  const auto score = [&] {
    auto choice = picker->choose(request, {});
    chosen = choice->booking.endpoint;
    picker->ended(choice->booking, Outcome::neither);
    return choice->picked[0].score;
  };
  EXPECT_EQ(score(), 0);
  const EndpointId holder = chosen;
  EXPECT_GT(score(), 0);
  EXPECT_EQ(chosen, holder);
  read(holder, 110);
  EXPECT_GT(score(), 0);
  read(holder, 3);
  EXPECT_EQ(score(), 0) << "its counters have begun anew";
}

TEST(PickPolicy, TheBlocksOfAnAdapterBearItsName) {
  const std::string precise = "precise-prefix-cache-producer";
  const auto picker = picker_of(
      {.plugins = {{"", precise}, {"", "prefix-cache-scorer", {{"prefixMatchInfoProducerName", precise}}}},
       .steps = {{"prefix-cache-scorer"}}});
  std::vector<Endpoint> endpoints;
  for (int i = 1; i <= 8; ++i) endpoints.push_back({.name = fmt::format("10.0.0.{}:80", i)});
  picker->set_endpoints(endpoints);
  std::vector<Scrape> scrapes;
  const auto there = picker->view();
  for (const Member& member : there->members) scrapes.push_back({.endpoint = member.id, .answered = true});
  picker->scraped(std::move(scrapes));
  RouteRequest request{.model = "tale", .tokens_are_exact = true};
  for (std::uint32_t token = 0; token < 16; ++token) request.tokens.push_back(token);
  const auto tell = [&](std::string_view name, std::string adapter) {
    const auto view = picker->view();
    picker->cache_changed(*view->find(name),
                          {{{.kind = CacheEvent::Kind::stored,
                             .blocks = {1},
                             .tokens = request.tokens,
                             .block_size = 16,
                             .adapter = std::move(adapter)}}},
                          {});
  };
  const auto serve = [&](std::vector<std::string> adapters) {
    picker->set_models(there->members.at(0), std::nullopt, std::move(adapters));
  };
  tell("10.0.0.3:80", "");
  tell("10.0.0.5:80", "tale");
  const auto pick = [&] { return picker->choose(request, {}).value().picked.at(0).name; };
  EXPECT_EQ(pick(), "10.0.0.3:80") << "a name that nobody has called an adapter's is the model's";
  serve({"tale"});
  EXPECT_EQ(pick(), "10.0.0.5:80");
  picker->set_endpoints(endpoints);
  EXPECT_EQ(pick(), "10.0.0.5:80") << "who lists endpoints does not know of adapters";
  serve({});
  request.model = "another";
  EXPECT_EQ(pick(), "10.0.0.3:80");
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

TEST_F(ProcessorTest, WithoutFlowControlPrioritiesBelowZeroGoWhileThereIsRoom) {
  begin(1, {.rules = {.objectives = {{"batch", -1}}}});
  const auto ask = [&](std::map<std::string, std::string> headers) {
    next();
    CHECK(send(request_headers(std::move(headers))));
    CHECK(send(request_body(kBody)));
  };
  ask({{"x-llm-d-inference-objective", "batch"}});
  expect_refused(429, "system saturated, sheddable request dropped", "rejected-saturated");
  ask({});
  EXPECT_TRUE(answers_.at(0).has_request_headers());
  EndpointState free;
  free.observed_us = now_us();
  balancer_->scraped({{.endpoint = 0, .answered = true, .state = free}});
  ask({{"x-llm-d-inference-objective", "batch"}});
  EXPECT_TRUE(answers_.at(0).has_request_headers());
}

}  // namespace
}  // namespace octavo::fleet
