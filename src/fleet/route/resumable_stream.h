// A stream that can continue at another replica if its replica fails (NVIDIA Dynamo's migration). Stores the
// tokens that the client has received, and makes the body for the next replica.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/relay/event_cutter.h"

namespace octavo::fleet {

// Requests token ids from replicas (return_token_ids), and removes them from the events unless the client has
// requested them. The next replica receives the client's body with `resume_token_ids`, which `octavo serve`
// supports.
// Named events (/v1/messages, /v1/responses) wait until the token ids of their step arrive, so that the
// client never receives a part of a step.
class ResumableStream {
 public:
  // Returns nullopt if the request is not a stream of one answer, or if tokens are hidden.
  static std::optional<ResumableStream> of(std::string_view path, std::string_view body);

  std::string body() const;
  // Returns whether the client has received events, after which the next replica must continue.
  bool begun() const { return !id_.empty(); }
  const std::string& id() const { return id_; }  // id of the answer; "": no event yet

  // Returns the events for the client that are complete with these bytes; empty after an end or a failure.
  std::string push(std::string_view bytes);
  // Call it at the normal end of the replica's answer. Returns the last event if its terminator is missing.
  // Not all servers send [DONE].
  std::string finish();
  bool ended() const { return ended_; }    // the last event has arrived
  bool failed() const { return failed_; }  // the replica has reported that it cannot continue

  // The replica has failed. The next events come from another replica.
  void lost();
  // False: a replica has sent text without token ids.
  bool knows_tokens() const { return knows_tokens_; }
  // Returns the missing events if the answer is complete; otherwise nullopt.
  std::optional<std::string> rest() const;

 private:
  ResumableStream() = default;
  std::string event(std::string_view text);
  std::string chunk(std::string_view text, std::string_view data);
  // Named events (named_events.cc).
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
  std::string head_;  // the last event as JSON, without choices and usage
  bool migrated_ = false;
  bool knows_tokens_ = true;
  bool finished_ = false;  // the answer is complete, but the last event may be missing
  bool ended_ = false;
  bool failed_ = false;

  // Only for named events:
  std::string held_;          // events of the current step, which wait for its token ids
  bool shows_steps_ = false;  // the replica marks the end of each step with token_ids
  std::int64_t number_ = 0;   // sequence number of the next event
  std::int64_t sent_ = 0;     // sequence number after the last event that the client has received
};

}  // namespace octavo::fleet
