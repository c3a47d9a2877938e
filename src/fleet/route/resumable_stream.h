// A streamed answer that continues at another replica when its own one fails (NVIDIA Dynamo's migration): the
// tokens that the client has, and the body for the next replica.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/relay/event_cutter.h"

namespace octavo::fleet {

// Replicas are asked for the ids of the answer's tokens (return_token_ids), of which the client sees nothing
// unless it has asked, too. The next replica gets the client's body with `resume_token_ids`, which `octavo
// serve` understands.
class ResumableStream {
 public:
  // nullopt where the request is not for a stream of one answer, or hides some of its tokens.
  static std::optional<ResumableStream> of(std::string_view path, std::string_view body);

  // For the next replica.
  std::string body() const;
  // The client has seen part of the answer: the next replica must continue after it.
  bool begun() const { return !id_.empty(); }

  // The whole events for the client that these bytes complete; empty after an end or a failure.
  std::string push(std::string_view bytes);
  // The same where the replica's answer ends as it should: of an event that nothing ends. Not all servers say
  // [DONE].
  std::string finish();
  bool ended() const { return ended_; }    // the last event has come
  bool failed() const { return failed_; }  // the replica has reported that it cannot continue

  // The replica is gone: what follows comes from another one.
  void lost();
  // Some replica has not told which tokens its text is made of.
  bool knows_tokens() const { return knows_tokens_; }
  // The events that are missing where the answer itself was complete.
  std::optional<std::string> rest() const;

 private:
  ResumableStream() = default;
  std::string event(std::string_view text);
  std::string chunk(std::string_view text, std::string_view data);

  std::string body_;
  EventCutter events_;
  bool shows_ids_ = false;    // the client has asked for them
  bool shows_usage_ = false;  // at the end
  std::vector<std::int64_t> tokens_;
  std::size_t prompt_tokens_ = 0;
  std::string id_;  // of all events; "": none has come
  std::int64_t created_ = 0;
  std::string head_;  // of the last event, as JSON: all but choices and usage
  bool migrated_ = false;
  bool knows_tokens_ = true;
  bool finished_ = false;  // the answer is complete, the last event may be missing
  bool ended_ = false;
  bool failed_ = false;
};

}  // namespace octavo::fleet
