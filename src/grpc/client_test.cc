// Tests the client with gRPC's server library.
#include "grpc/client.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace octavo::grpc {
namespace {

using ::grpc::ByteBuffer;
using ::grpc::StatusCode;
using testing::HasSubstr;

std::string bytes_of(const ByteBuffer& buffer) {
  std::vector<::grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const auto& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// Sends the message back twice. The method Fail ends with an error.
class TwiceOver final : public ::grpc::CallbackGenericService {
  class Reactor final : public ::grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(bool fails) : fails_(fails) { StartRead(&in_); }
    void OnReadDone(bool ok) override {
      if (!ok || fails_) return Finish({StatusCode::INVALID_ARGUMENT, "not this one"});
      const std::string bytes = bytes_of(in_);
      const ::grpc::Slice slice(bytes + bytes);
      out_ = ByteBuffer(&slice, 1);
      StartWriteAndFinish(&out_, {}, ::grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    const bool fails_;
    ByteBuffer in_, out_;
  };

 public:
  ::grpc::ServerGenericBidiReactor* CreateReactor(::grpc::GenericCallbackServerContext* context) override {
    return new Reactor(context->method().ends_with("/Fail"));
  }
};

class GrpcClient : public testing::Test {
 protected:
  Result<std::string> ask(const std::string& message, const std::string& method = "Send",
                          std::size_t reply_bytes_max = 1 << 24) {
    return call({.host = "127.0.0.1",
                 .port = static_cast<std::uint16_t>(port_),
                 .path = "/test.Echo/" + method,
                 .reply_bytes_max = reply_bytes_max},
                message);
  }

  int port_ = 0;
  TwiceOver service_;
  std::unique_ptr<::grpc::Server> server_ = [this] {
    ::grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    return builder.BuildAndStart();
  }();
};

TEST_F(GrpcClient, MessagesOfAllSizesComeBack) {
  for (const std::size_t bytes : {0UL, 1UL, 16'385UL, 70'000UL, 5'000'000UL}) {
    const std::string message(bytes, 'x');
    EXPECT_EQ(ask(message).value(), message + message) << bytes;
  }
}

TEST_F(GrpcClient, FailuresAreNamed) {
  EXPECT_THAT(ask("a", "Fail").error().message, HasSubstr("gRPC status 3 not this one"));
  EXPECT_THAT(ask(std::string(1000, 'a'), "Send", 1000).error().message,
              HasSubstr("the reply has more than 1000 bytes"));
  server_->Shutdown();
  EXPECT_FALSE(ask("a"));
}

}  // namespace
}  // namespace octavo::grpc
