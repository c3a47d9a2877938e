// Writes the server-sent events of /v1/messages and /v1/responses, which have a line `event:`.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "request/sampling_params.h"

namespace octavo::openai {

// Collects the events of one step of an answer. With return_token_ids, the last event of the step has the
// field `token_ids` with the step's output tokens. If the stream breaks after this event, the client can
// continue the stream with resume_token_ids.
class NamedEvents {
 public:
  explicit NamedEvents(bool shows_tokens) : shows_tokens_(shows_tokens) {}

  void add(std::string_view name, boost::json::object fields);
  void count(const std::vector<TokenId>& tokens);  // adds output tokens to the step
  void forget_tokens() { tokens_.clear(); }  // drops the counted tokens, because the client already has them
  // Returns the step's events. If there are no events, the tokens are added to the next step.
  std::string take();
  // Returns the events so far, without token_ids, because more events of the step follow.
  std::string take_unfinished();

 private:
  void write_last();

  const bool shows_tokens_;
  std::vector<TokenId> tokens_;
  std::string text_;
  std::string last_name_;  // "": there is no event
  boost::json::object last_;
};

}  // namespace octavo::openai
