// A streamed answer that continues at another replica when its own one fails (NVIDIA Dynamo's migration):
// keeps the tokens that the client has, and makes the body for the next replica.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/relay/event_cutter.h"

namespace octavo::fleet {

// Requests token ids from replicas (return_token_ids) and removes them from the events, unless the client
// requested them, too. The next replica gets the client's body with `resume_token_ids`, which `octavo serve`
// understands.
class ResumableStream {
 public:
  // nullopt: not a stream of one answer, or some tokens are hidden.
  static std::optional<ResumableStream> of(std::string_view path, std::string_view body);

  // For the next replica.
  std::string body() const;
  // The client has seen part of the answer: the next replica must continue after it.
  bool begun() const { return !id_.empty(); }

  // The whole events for the client that these bytes complete; empty after an end or a failure.
  std::string push(std::string_view bytes);
  // The same when the replica's answer ends normally: returns a last event without a terminator. Not all
  // servers send [DONE].
  std::string finish();
  bool ended() const { return ended_; }    // the last event has come
  bool failed() const { return failed_; }  // the replica has reported that it cannot continue

  // The replica has failed: the next events come from another one.
  void lost();
  // False: a replica sent text without token ids.
  bool knows_tokens() const { return knows_tokens_; }
  // The events that are missing where the answer itself was complete.
  std::optional<std::string> rest() const;

 private:
  ResumableStream() = default;
  std::string event(std::string_view text);
  std::string chunk(std::string_view text, std::string_view data);

  std::string body_;
  EventCutter events_;
  bool shows_ids_ = false;    // the client requested them
  bool shows_usage_ = false;  // at the end
  std::vector<std::int64_t> tokens_;
  std::size_t prompt_tokens_ = 0;
  std::string id_;  // of all events; "" before the first
  std::int64_t created_ = 0;
  std::string head_;  // of the last event, as JSON: all but choices and usage
  bool migrated_ = false;
  bool knows_tokens_ = true;
  bool finished_ = false;  // the answer is complete, the last event may be missing
  bool ended_ = false;
  bool failed_ = false;
};

}  // namespace octavo::fleet
