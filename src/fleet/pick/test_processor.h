// For tests of Processor: a picker, and one request from the gateway.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "ext_proc.pb.h"
#include "fleet/pick/processor.h"

namespace octavo::fleet {

using ext_proc::ProcessingRequest;
using ext_proc::ProcessingResponse;

inline constexpr std::string_view kBody = R"({"model":"m","prompt":"Once upon a time"})";

class ProcessorTest : public testing::Test {
 protected:
  // Makes the endpoints 10.0.0.1:8000, 10.0.0.2:8000, and so on.
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
  // Sends a complete request with kBody and returns its endpoint. Returns "" if the request is refused.
  std::string destination(const ProcessingRequest& last = request_body(kBody)) {
    CHECK(send(request_headers()));
    CHECK(send(last));
    return answers_.at(0).has_request_headers() ? choice_headers().at("x-gateway-destination-endpoint") : "";
  }
  void expect_refused(int status, std::string_view text, std::string_view reason = "") {
    ASSERT_EQ(answers_.size(), 1U);
    const auto& refused = answers_[0].immediate_response();
    EXPECT_EQ(refused.status().code(), status);
    EXPECT_THAT(refused.body(), testing::HasSubstr(std::string(text)));
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

}  // namespace octavo::fleet
