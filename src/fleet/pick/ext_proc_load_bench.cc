// Load test of a picker: sends requests at a fixed rate, like a gateway, and measures the time to the
// decision.
//
//   ext_proc_load_bench 127.0.0.1:9002 RATE TOKENS SECONDS
//
// prints "RATE P50 P99": completed requests per second, and latency quantiles in ms. Requests start at
// fixed times, even if earlier requests have no response yet, and their latencies count from these times.
#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "ext_proc.pb.h"

namespace {

namespace ext_proc = envoy::service::ext_proc::v3;
using Clock = std::chrono::steady_clock;
using ext_proc::ProcessingRequest;
using ext_proc::ProcessingResponse;

constexpr std::size_t kPieceBytes = 60'000;

using Stub = grpc::TemplatedGenericStub<ProcessingRequest, ProcessingResponse>;

struct Results {
  std::mutex mutex;
  std::vector<double> ms;
  std::atomic<int> under_way = 0;
};

void add_header(ext_proc::HeaderMap& headers, const char* name, const char* value) {
  auto& header = *headers.add_headers();
  header.set_key(name);
  header.set_raw_value(value);
}

// One request and its short response. Deletes itself at the end of the stream.
class Request : public grpc::ClientBidiReactor<ProcessingRequest, ProcessingResponse> {
 public:
  Request(Stub& stub, const std::string& body, Clock::time_point due, Results& results)
      : results_(results), due_(due) {
    auto& first = writes_.emplace_back();
    auto& headers = *first.mutable_request_headers()->mutable_headers();
    add_header(headers, ":path", "/v1/completions");
    add_header(headers, ":method", "POST");
    add_header(headers, "content-type", "application/json");
    first.mutable_protocol_config()->set_request_body_mode(ext_proc::FULL_DUPLEX_STREAMED);
    first.mutable_protocol_config()->set_response_body_mode(ext_proc::FULL_DUPLEX_STREAMED);
    for (std::size_t at = 0; at < body.size(); at += kPieceBytes) {
      auto& piece = *writes_.emplace_back().mutable_request_body();
      piece.set_body(body.substr(at, kPieceBytes));
      piece.set_end_of_stream(at + kPieceBytes >= body.size());
    }
    before_answer_ = writes_.size();
    add_header(*writes_.emplace_back().mutable_response_headers()->mutable_headers(), ":status", "200");
    auto& answer = *writes_.emplace_back().mutable_response_body();
    answer.set_body(R"({"usage": {"prompt_tokens": 9, "completion_tokens": 1}})");
    answer.set_end_of_stream(true);
    ++results_.under_way;
    stub.PrepareBidiStreamingCall(&context_, "/envoy.service.ext_proc.v3.ExternalProcessor/Process", {},
                                  this);
    StartWrite(&writes_[0]);
    StartRead(&response_);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;
    if (++written_ == before_answer_)
      answer();
    else if (written_ < writes_.size())
      StartWrite(&writes_[written_]);
    else
      StartWritesDone();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (response_.has_request_headers())
      picked_ms_ = std::chrono::duration<double, std::milli>(Clock::now() - due_).count();
    if (response_.request_body().response().body_mutation().streamed_response().end_of_stream()) answer();
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    if (status.ok() && picked_ms_ >= 0) {
      const std::lock_guard lock(results_.mutex);
      results_.ms.push_back(picked_ms_);
    }
    --results_.under_way;
    delete this;
  }

 private:
  // Sends the endpoint's response, after the request is written and the picker has returned its body.
  void answer() {
    if (++whole_ == 2) StartWrite(&writes_[before_answer_]);
  }

  Results& results_;
  const Clock::time_point due_;
  grpc::ClientContext context_;
  std::vector<ProcessingRequest> writes_;
  ProcessingResponse response_;
  std::size_t written_ = 0, before_answer_ = 0;
  std::atomic<int> whole_ = 0;
  double picked_ms_ = -1;
};

// Returns a prompt whose first half is one of 16 texts that the requests share.
std::string body(std::uint64_t number, int tokens) {
  std::string text;
  for (int i = 0; i < tokens; ++i) {
    const std::uint64_t seed = i < tokens / 2 ? number % 16 : 16 + number;
    for (int letter = 0; letter < 3; ++letter)
      text +=
          static_cast<char>('a' + octavo::random_bits(seed, static_cast<std::uint64_t>(3 * i + letter)) % 10);
    text += ' ';
  }
  return fmt::format(R"({{"model": "m", "prompt": "{}", "max_tokens": 1}})", text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: ext_proc_load_bench HOST:PORT RATE TOKENS SECONDS\n", stderr);
    return 2;
  }
  const double rate = std::stod(argv[2]), seconds = std::stod(argv[4]);
  Stub stub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  std::vector<std::string> bodies;
  for (std::uint64_t i = 0; i < 32; ++i) bodies.push_back(body(i, std::stoi(argv[3])));
  Results results;
  const auto began = Clock::now();
  const auto count = static_cast<std::size_t>(rate * seconds);
  for (std::size_t i = 0; i < count; ++i) {
    const auto due = began + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(static_cast<double>(i) / rate));
    std::this_thread::sleep_until(due);
    new Request(stub, bodies[i % bodies.size()], due, results);
  }
  while (results.under_way > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double took = std::chrono::duration<double>(Clock::now() - began).count();
  if (results.ms.empty()) {
    std::fputs("no request came to its end\n", stderr);
    return 1;
  }
  std::ranges::sort(results.ms);
  const auto at = [&](std::size_t percent) { return results.ms[(results.ms.size() - 1) * percent / 100]; };
  fmt::print("{:.1f} {:.3f} {:.3f}\n", static_cast<double>(results.ms.size()) / took, at(50), at(99));
  return 0;
}
