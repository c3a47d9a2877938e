// Fuzzer: for any bytes in any pieces, the session replies or ends, and frees its calls. The first byte
// decides whether HTTP/2's preface is sent.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "grpc/health.h"
#include "grpc/session.h"

namespace {

using namespace octavo::grpc;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);

int open_calls = 0;

// Sends each message back. Pauses after every third message until the next step.
class Echo : public Receiver {
 public:
  Echo(std::shared_ptr<Call> call, std::shared_ptr<Call>& waiting)
      : call_(std::move(call)), waiting_(waiting) {
    ++open_calls;
  }
  ~Echo() override { --open_calls; }

  bool message(std::string_view bytes) override {
    bytes.copy(call_->send(bytes.size()), bytes.size());
    if (++count_ % 3 != 0) return true;
    waiting_ = call_;
    return false;
  }
  void half_closed() override { call_->finish(Status::ok); }
  void disconnected() override {}

 private:
  const std::shared_ptr<Call> call_;
  std::shared_ptr<Call>& waiting_;
  int count_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  {
    std::shared_ptr<Call> waiting;
    Health health;
    health.set("", true);
    const Methods methods{
        {"/e", [&](std::shared_ptr<Call> call) { return std::make_shared<Echo>(std::move(call), waiting); }},
        {std::string(kHealthCheck), health_check(health)}};
    Session session(methods, 4096, {});
    std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 2 == 0) CHECK(session.receive(kPreface) && session.receive(kSettings));
    const std::size_t step = 1 + data[0] / 2;
    bool speaks = true;
    while (speaks && !rest.empty() && !session.over()) {
      const auto some = rest.substr(0, step);
      rest.remove_prefix(some.size());
      speaks = session.receive(some);
      std::string out;
      session.send(out);
      if (const auto call = std::exchange(waiting, nullptr)) call->resume();
    }
  }
  CHECK(open_calls == 0, "all calls are freed");
  return 0;
}
