// Adds up the cost of a request at all workers that computed a part of it: prefill and decode workers,
// refused and repeated attempts, and streams that continued at another worker. Octavo's workers report the
// cost in the header X-Octavo-Cost or, for event streams, in a comment after the last event
// (request/answer_cost.h).
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"
#include "request/answer_cost.h"

namespace octavo::fleet {

class RequestCost {
 public:
  explicit RequestCost(bool wanted) : wanted_(wanted) {}

  bool wanted() const { return wanted_; }
  bool reported() const { return reported_; }
  const AnswerCost& sum() const { return sum_; }

  // Adds the cost from the response's headers, and removes it from the headers. Returns false if they contain
  // no cost.
  bool take_head(http::Response& answer);
  // Reads the next piece of a stream. Returns the bytes for the client, which are valid until the next call:
  // the piece without the worker's cost comment, and without a last line that may be the comment's beginning.
  // Such a line comes with the next piece.
  std::string_view take_piece(std::string_view piece);
  // Must be called at the end of a worker's stream. Adds the cost from the stream's comment. Returns the last
  // line if take_piece() has kept it back. A broken stream may end within its comment, so the line is for the
  // client only if the stream is complete.
  struct StreamEnd {
    std::string last_line;
    bool reported = false;  // whether the stream's comment has a cost
  };
  StreamEnd end_stream();
  // Returns the comment with the total cost for the client. Returns "" if the client does not request the
  // cost.
  std::string comment() const;

 private:
  bool add(std::string_view text);

  const bool wanted_;
  bool reported_ = false;
  AnswerCost sum_;
  std::string tail_;  // the stream after the comment's mark
  std::string held_;  // a last line that may be the beginning of the mark
  std::string out_;   // result of take_piece()
  bool in_comment_ = false;
  bool at_line_ = true;  // the next byte begins a line
};

}  // namespace octavo::fleet
