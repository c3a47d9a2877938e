// The cost of a request at all workers that computed a part of it (request/answer_cost.h): prefill and decode
// workers, refused and repeated attempts, continued streams. Octavo's workers report it in the header
// X-Octavo-Cost or, in streams of events, in a comment after the last event.
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"
#include "request/answer_cost.h"

namespace octavo::fleet {

class RequestCost {
 public:
  // wanted: the client requests the cost.
  explicit RequestCost(bool wanted) : wanted_(wanted) {}

  bool wanted() const { return wanted_; }
  bool reported() const { return reported_; }  // a worker has reported a cost
  const AnswerCost& sum() const { return sum_; }

  // Adds the cost in the headers of an answer, and removes it from them.
  void take_head(http::Response& answer);
  // Reads the next piece of a stream. Returns the piece without a worker's comment.
  std::string_view take_piece(std::string_view piece);
  // Called at the end of a stream: adds the cost in its comment.
  void end_stream();
  // The comment for the client, with the sum; "" if it does not want one.
  std::string comment() const;

 private:
  void add(std::string_view text);

  const bool wanted_;
  bool reported_ = false;
  AnswerCost sum_;
  std::string tail_ = "\n";  // last bytes of the stream, which may contain a part of the comment
};

}  // namespace octavo::fleet
