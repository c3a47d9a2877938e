#include "trace/tracer.h"
#include "base/clock.h"
#include "base/testing/eventually.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <mutex>

#include "grpc/server.h"

namespace octavo {
namespace {

using testing::HasSubstr;

// Returns protobuf fields by number. Values of messages, strings and fixed64 are their bytes.
std::multimap<std::uint64_t, std::string> fields_of(std::string_view bytes) {
  std::multimap<std::uint64_t, std::string> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.size()) {
    const std::uint64_t tag = varint();
    if (tag % 8 == 0) {
      fields.emplace(tag / 8, std::to_string(varint()));
      continue;
    }
    const std::size_t size = tag % 8 == 1 ? 8 : varint();
    fields.emplace(tag / 8, bytes.substr(at, size));
    at += size;
  }
  return fields;
}

std::string only(std::string_view bytes, std::uint64_t field) {
  const auto all = fields_of(bytes);
  EXPECT_EQ(all.count(field), 1u) << field;
  return all.count(field) == 1 ? all.find(field)->second : "";
}

std::uint64_t number_of(std::string_view fixed64) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(fixed64.at(i));
  return value;
}

// Stores each Export request, and responds with an empty message.
class Collector {
 public:
  std::string endpoint() const { return "grpc://127.0.0.1:" + std::to_string(server_->port()); }
  std::vector<std::string> messages() {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  struct Export final : grpc::Receiver {
    Export(Collector& owner, std::shared_ptr<grpc::Call> of) : collector(owner), call(std::move(of)) {}
    bool message(std::string_view bytes) override {
      const std::lock_guard lock(collector.mutex_);
      collector.messages_.emplace_back(bytes);
      return true;
    }
    void half_closed() override {
      call->send(0);
      call->finish(grpc::Status::ok);
    }
    void disconnected() override {}

    Collector& collector;
    std::shared_ptr<grpc::Call> call;
  };

  std::mutex mutex_;
  std::vector<std::string> messages_;
  std::unique_ptr<grpc::Server> server_ =
      grpc::Server::start({}, {{"/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                                [this](std::shared_ptr<grpc::Call> call) {
                                  return std::make_shared<Export>(*this, std::move(call));
                                }}})
          .value();
};

TEST(Tracer, SpansOverGrpcAreOtlp) {
  Collector collector;
  {
    const auto tracer = Tracer::start(collector.endpoint(), "tests").value();
    tracer->record(
        {.context = TraceContext{.trace_id = std::string(30, '0') + "a7", .parent_span = "00000000000000ff"},
         .id = "0123456789abcdef",
         .name = "llm_request",
         .kind = SpanKind::client,
         .attributes = {{"text", "b"}, {"count", std::int64_t{-2}}, {"share", 0.5}},
         .begun_us = 1000,
         .ended_us = 3500});
  }
  const std::vector<std::string> messages = collector.messages();
  ASSERT_EQ(messages.size(), 1u);
  const std::string resource_spans = only(messages[0], 1);
  const std::string service = only(only(resource_spans, 1), 1);
  EXPECT_EQ(only(service, 1), "service.name");
  EXPECT_EQ(only(only(service, 2), 1), "tests");
  const std::string scope = only(resource_spans, 2), span = only(scope, 2);
  EXPECT_EQ(only(only(scope, 1), 1), "octavo");
  EXPECT_EQ(only(span, 1), std::string(15, '\0') + '\xa7');
  EXPECT_EQ(only(span, 2), "\x01\x23\x45\x67\x89\xab\xcd\xef");
  EXPECT_EQ(only(span, 4), std::string(7, '\0') + '\xff');
  EXPECT_EQ(only(span, 5), "llm_request");
  EXPECT_EQ(only(span, 6), "3");
  EXPECT_EQ(number_of(only(span, 8)) - number_of(only(span, 7)), 2'500'000u);
  std::map<std::string, std::string> attributes;
  const auto all = fields_of(span);
  for (auto [at, end] = all.equal_range(9); at != end; ++at)
    attributes[only(at->second, 1)] = only(at->second, 2);
  EXPECT_EQ(only(attributes["text"], 1), "b");
  EXPECT_EQ(only(attributes["count"], 3), std::to_string(static_cast<std::uint64_t>(-2)));
  EXPECT_EQ(std::bit_cast<double>(number_of(only(attributes["share"], 4))), 0.5);
}

TEST(Tracer, TheProtocolIsChosenOrRefused) {
  const auto error = [](const std::string& endpoint, std::string_view protocol) {
    const auto tracer = Tracer::start(endpoint, "tests", protocol);
    return tracer ? "" : tracer.error().message;
  };
  EXPECT_EQ(error("http://127.0.0.1:1", "grpc"), "");
  EXPECT_EQ(error("http://127.0.0.1:1/v1/traces", "http/protobuf"), "");
  EXPECT_EQ(error("grpc://127.0.0.1:1", ""), "");
  EXPECT_THAT(error("http://127.0.0.1:1", ""), HasSubstr("or be grpc://HOST:4317"));
  EXPECT_THAT(error("https://127.0.0.1:1", "grpc"), HasSubstr("gRPC with TLS is not supported"));
  EXPECT_THAT(error("grpc://127.0.0.1:1", "http/json"), HasSubstr("must be grpc for an endpoint grpc://"));
  EXPECT_THAT(error("http://127.0.0.1:1/v1/traces", "thrift"),
              HasSubstr("must be grpc, http/protobuf or http/json"));
}

}  // namespace
}  // namespace octavo
