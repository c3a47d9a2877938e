// An event stream that can continue at another worker if its worker fails (NVIDIA Dynamo's migration).
// Stores the tokens that the client has received, and writes the request body for the next worker.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/relay/event_cutter.h"

namespace octavo::fleet {

// Requests token ids from workers (return_token_ids), and removes the ids from the events unless the client
// requested them. The next worker gets the client's body with `resume_token_ids`, which `octavo serve`
// supports.
// Named events (/v1/messages and /v1/responses) are held back until the token ids of their decoding step
// arrive, so that the client never receives a part of a step.
class ResumableStream {
 public:
  // Returns nullopt if the request is not a stream with one choice, or if its tokens are hidden from
  // clients.
  static std::optional<ResumableStream> of(std::string_view path, std::string_view body);

  std::string body() const;
  // Returns whether the client has received an event. The next worker must then continue after this event.
  bool begun() const { return !id_.empty(); }
  const std::string& id() const { return id_; }  // id of the response; "": no event yet

  // Returns the complete events for the client. Returns "" after the end of the stream or a failure.
  std::string push(std::string_view bytes);
  // Must be called when the worker's response ends normally. Returns the last event if its blank line is
  // missing. Not all servers send [DONE].
  std::string finish();
  bool ended() const { return ended_; }
  bool failed() const { return failed_; }  // the worker has reported that it cannot continue

  // The worker has failed, and later events come from another worker.
  void lost();
  // Returns false if a worker has sent text without token ids.
  bool knows_tokens() const { return knows_tokens_; }
  // Returns the missing final events if the answer is otherwise complete, and nullopt if it is not.
  std::optional<std::string> rest() const;

 private:
  ResumableStream() = default;
  std::string event(std::string_view text);
  std::string chunk(std::string_view text, std::string_view data);
  // Named events (named_events.cc):
  std::string named_event(std::string_view text);
  void note_start(const boost::json::object& event);
  bool note_tokens(boost::json::object& event);
  void continue_numbers(boost::json::object& event);

  std::string body_;
  bool named_ = false;
  EventCutter events_;
  bool shows_ids_ = false;
  bool shows_usage_ = false;
  std::vector<std::int64_t> tokens_;
  std::size_t prompt_tokens_ = 0;
  std::string id_;  // id of all events; "": no event yet
  std::int64_t created_ = 0;
  std::string head_;  // JSON of the last event, without choices and usage
  bool migrated_ = false;
  bool knows_tokens_ = true;
  bool finished_ = false;  // the answer is complete, but the last event may be missing
  bool ended_ = false;
  bool failed_ = false;

  // For named events:
  std::string held_;          // events of the current step, until its token ids arrive
  bool shows_steps_ = false;  // the worker marks the end of each step with token_ids
  std::int64_t number_ = 0;
  std::int64_t sent_ = 0;     // sequence number after the last event that the client has received
};

}  // namespace octavo::fleet
