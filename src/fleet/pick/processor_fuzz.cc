// Fuzzer: sends a gateway's messages in random order. The picker must respond or end the stream, must not
// crash, and must end all bookings. The first byte of each step selects the message, and the next bytes are
// its content.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "ext_proc.pb.h"
#include "fleet/pick/processor.h"

namespace {

using namespace octavo::fleet;

class Steps {
 public:
  explicit Steps(std::string_view bytes) : left_(bytes) {}

  bool done() const { return left_.empty(); }
  unsigned number() {
    if (left_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  std::string_view text() {
    const std::string_view some = left_.substr(0, number());
    left_.remove_prefix(some.size());
    return some;
  }

 private:
  std::string_view left_;
};

void add_headers(Steps& steps, ext_proc::HeaderMap& headers) {
  constexpr std::string_view kNames[] = {":path",
                                         ":method",
                                         ":status",
                                         "content-type",
                                         "x-request-id",
                                         "x-llm-d-inference-objective",
                                         "x-llm-d-model-name-rewrite"};
  constexpr std::string_view kValues[] = {"/v1/completions", "POST", "200", "text/event-stream", "shed", "m"};
  for (unsigned count = steps.number() % 8; count > 0; --count) {
    auto& header = *headers.add_headers();
    header.set_key(std::string(kNames[steps.number() % std::size(kNames)]));
    const unsigned value = steps.number();
    header.set_raw_value(std::string(value < 128 ? kValues[value % std::size(kValues)] : steps.text()));
  }
}

std::string_view body(Steps& steps) {
  constexpr std::string_view kBodies[] = {R"({"model":"m","prompt":"Once"})", R"({"model":)", R"("m"})",
                                          R"(data: {"usage":{"prompt_tokens":3,"completion_tokens":2}})"};
  const unsigned which = steps.number();
  return which < 128 ? kBodies[which % std::size(kBodies)] : steps.text();
}

ext_proc::ProcessingRequest message(Steps& steps) {
  ext_proc::ProcessingRequest message;
  const unsigned kind = steps.number();
  const bool end = kind & 1;
  switch (kind / 2 % 7) {
    case 0:
      add_headers(steps, *message.mutable_request_headers()->mutable_headers());
      message.mutable_request_headers()->set_end_of_stream(end);
      if (const unsigned modes = steps.number(); modes & 1) {
        auto& config = *message.mutable_protocol_config();
        config.set_request_body_mode(static_cast<decltype(config.request_body_mode())>(modes / 2 % 6));
        config.set_response_body_mode(static_cast<decltype(config.response_body_mode())>(modes / 16 % 6));
      }
      break;
    case 1:
      message.mutable_request_body()->set_body(std::string(body(steps)));
      message.mutable_request_body()->set_end_of_stream(end);
      break;
    case 2:
      message.mutable_request_trailers();
      break;
    case 3:
      add_headers(steps, *message.mutable_response_headers()->mutable_headers());
      message.mutable_response_headers()->set_end_of_stream(end);
      break;
    case 4:
      message.mutable_response_body()->set_body(std::string(body(steps)));
      message.mutable_response_body()->set_end_of_stream(end);
      break;
    case 5:
      message.mutable_response_trailers();
      break;
    case 6:
      break;
  }
  if (end) {
    auto& hint = (*message.mutable_metadata_context()->mutable_filter_metadata())["envoy.lb.subset_hint"];
    auto& list = *(*hint.mutable_fields())["x-gateway-destination-endpoint-subset"].mutable_list_value();
    list.add_values()->set_string_value(std::string(kind & 64 ? "10.0.0.1" : body(steps)));
  }
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto balancer = *Balancer::make(
      {.pools = {{.pipeline = {{{"", "active-request-scorer"}}, {{"active-request-scorer"}}}}}});
  balancer->set_endpoints({{.name = "10.0.0.1:80", .url = "http://10.0.0.1:80"}});
  balancer->scraped({{.endpoint = 0, .answered = true}});
  ProcessorContext context(
      *balancer, {.body_bytes_max = 4096,
                  .rules = {.objectives = {{"shed", -1}}, .rewrites = {{"1", "r", {{{"m"}, {{"n", 1}}}}}}}});
  {
    Processor processor(context);
    Steps steps({reinterpret_cast<const char*>(data), size});
    std::vector<ext_proc::ProcessingResponse> answers;
    while (!steps.done() && !processor.over()) {
      answers.clear();
      if (!processor.process(message(steps), answers)) break;
    }
  }
  CHECK(balancer->saturation(ConcurrencyDetector{}) == 0, "what was booked is given back");
  return 0;
}
