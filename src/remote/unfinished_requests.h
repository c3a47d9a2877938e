// The unfinished requests of an engine, and the output tokens that their answers have so far. An engine that
// gets both continues the answers with the same bits. Not thread-safe.
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
  // A request ends with an error after kDeathsMax deaths of engines that had it, if it got no token in
  // between. The death of a young engine counts as kYoungDeath deaths, because the engine probably had the
  // request from its start.
  static constexpr int kDeathsMax = 20;
  static constexpr int kYoungDeath = 4;

  // freed: called when a request has ended, with its number of answers.
  explicit UnfinishedRequests(std::function<void(int answers)> freed) : freed_(std::move(freed)) {}

  // Sets the engine index in outputs that this client makes itself.
  void set_engine(int engine) { engine_ = engine; }

  // Returns the message to the engine; valid until the request ends.
  const Submit& add(RequestId id, Request request, std::shared_ptr<OutputSink> sink, std::int64_t arrived_us);
  // Appends a Submit for each request, in the order of arrival.
  void append_all(std::string& out) const;
  // Records and delivers an output, or ignores it if the answer has ended. Returns true if the output had new
  // tokens.
  bool take(Output&& output, std::int64_t now_us);
  // Returns false if the request is unknown or has ended.
  bool mark_aborted(RequestId id);

  // Called when an engine that had the requests has died. It ends the aborted requests, and the requests that
  // may have caused the death.
  void engine_died(const Error& death, bool young);
  // Ends the unfinished answers of the request without a message from the engine.
  void abort(RequestId id);
  void end_all(const Error& error);

  bool use_adapter(std::string_view name) const;
  std::size_t size() const { return requests_.size(); }

 private:
  struct Unfinished {
    Submit message;  // message to the engine; request.answers_so_far has the unfinished answers
    std::shared_ptr<OutputSink> sink;
    int answers = 0;
    RequestTimes times;  // arrival, and first token in the first engine that had the request
    bool aborted = false;
    int deaths = 0;  // number of deaths since its last token
  };
  using Requests = std::map<RequestId, Unfinished>;

  void end(Requests::iterator request, FinishReason reason, const std::optional<Error>& error);

  const std::function<void(int)> freed_;
  int engine_ = 0;
  Requests requests_;  // sorted by order of arrival
};

}  // namespace octavo::remote
