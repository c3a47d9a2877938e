// The unfinished requests of an EngineProcess and their output tokens so far. A restarted engine gets both
// and continues every request with bit-identical outputs. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "remote/wire.h"
#include "request/request.h"

namespace octavo::remote {

class UnfinishedRequests {
 public:
  // A request ends with an error if kDeathsMax processes that had it died, without a new token between the
  // deaths. The death of a young process (EngineProcessOptions::young_ms) counts kYoungDeath times, because
  // the process probably had the request from its start.
  static constexpr int kDeathsMax = 20;
  static constexpr int kYoungDeath = 4;

  // freed: called with the number of sequences of a request that has ended.
  explicit UnfinishedRequests(std::function<void(int answers)> freed) : freed_(std::move(freed)) {}

  // Engine index for outputs that this client creates.
  void set_engine(int engine) { engine_ = engine; }

  // `turned` is called when the last answer of a request with a session ends without an error. `text` has the
  // tokens of prompt and output; `arrived_us` is the arrival of the request.
  using Turned =
      std::function<void(const Request& request, std::vector<TokenId> text, std::int64_t arrived_us)>;
  void tell_turns(Turned turned) { turned_ = std::move(turned); }

  // Returns the message to send, valid until the request ends.
  const Submit& add(RequestId id, Request request, std::shared_ptr<OutputSink> sink, std::int64_t arrived_us);
  // Appends a Submit for each request, in order of arrival.
  void append_all(std::string& out) const;
  // Stores the output and passes it to the sink. Ignores outputs of a sequence that has ended. Returns true
  // if there were new tokens.
  bool take(Output&& output, std::int64_t now_us);
  // Returns false if there is no such request.
  bool mark_aborted(RequestId id);

  // Called when the process has ended: it cannot confirm the aborted requests any more, so they end here.
  void end_aborted();
  // Ends the aborted requests, and the requests that may have killed too many processes.
  void engine_died(const Error& death, bool young);
  // Ends the request without waiting for the engine.
  void abort(RequestId id);
  void end_all(const Error& error);

  bool use_adapter(std::string_view name) const;
  std::size_t size() const { return requests_.size(); }

 private:
  struct Unfinished {
    Submit message;  // request.answers_so_far has the tokens of each sequence so far
    std::shared_ptr<OutputSink> sink;
    int answers = 0;
    RequestTimes times;  // arrival, and first token in any process
    bool aborted = false;
    int deaths = 0;  // deaths of processes since the last new token
  };
  using Requests = std::map<RequestId, Unfinished>;

  void end(Requests::iterator request, FinishReason reason, const std::optional<Error>& error);

  const std::function<void(int)> freed_;
  Turned turned_;
  int engine_ = 0;
  Requests requests_;  // sorted by id; ids ascend, so this is also the order of arrival
};

}  // namespace octavo::remote
