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

  // Adds the cost from the response's headers, and removes it from the headers.
  void take_head(http::Response& answer);
  // Reads the next piece of a stream. Returns the piece without the worker's cost comment.
  std::string_view take_piece(std::string_view piece);
  // Must be called at the end of a stream. Adds the cost from the stream's comment.
  void end_stream();
  // Returns the comment with the total cost for the client. Returns "" if the client does not request the
  // cost.
  std::string comment() const;

 private:
  void add(std::string_view text);

  const bool wanted_;
  bool reported_ = false;
  AnswerCost sum_;
  std::string tail_ = "\n";  // last bytes of the stream, which may contain a part of the comment
};

}  // namespace octavo::fleet
