// The requests of an engine that are not finished, and the tokens that their answers have so far. A new
// engine that gets both continues with the same bits. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "remote/wire.h"
#include "request/request.h"

namespace octavo::remote {

class UnfinishedRequests {
 public:
  // A request ends with an error after n deaths of engines that had it, without a token in between. The death
  // of a young engine counts for several: the request was probably there from its start.
  static constexpr int kDeathsMax = 20;
  static constexpr int kYoungDeath = 4;

  // freed: called with the number of answers of a request that has ended.
  explicit UnfinishedRequests(std::function<void(int answers)> freed) : freed_(std::move(freed)) {}

  // Number of the engine in outputs without an engine.
  void set_engine(int engine) { engine_ = engine; }

  // Returns the message to the engine; valid until the request ends.
  const Submit& add(RequestId id, Request request, std::shared_ptr<OutputSink> sink, std::int64_t arrived_us);
  // Appends a Submit for each request, in the order of arrival.
  void append_all(std::string& out) const;
  // Records and delivers an output; ignored if the answer has ended. True: it had new tokens.
  bool take(Output&& output, std::int64_t now_us);
  // False: unknown, or ended.
  bool mark_aborted(RequestId id);

  // An engine that had the requests has died: ends those that were aborted, and those that may be the cause.
  void engine_died(const Error& death, bool young);
  // Ends the unfinished answers without the engine.
  void abort(RequestId id);
  void end_all(const Error& error);

  bool use_adapter(std::string_view name) const;
  std::size_t size() const { return requests_.size(); }

 private:
  struct Unfinished {
    Submit message;  // its request.answers_so_far: unfinished answers
    std::shared_ptr<OutputSink> sink;
    int answers = 0;
    RequestTimes times;  // arrival and first token, in the first engine that had it
    bool aborted = false;
    int deaths = 0;  // since its last token
  };
  using Requests = std::map<RequestId, Unfinished>;

  void end(Requests::iterator request, FinishReason reason, const std::optional<Error>& error);

  const std::function<void(int)> freed_;
  int engine_ = 0;
  Requests requests_;  // in the order of arrival
};

}  // namespace octavo::remote
