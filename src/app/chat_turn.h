// One answer of `octavo chat`, gathered from the events of a stream of /v1/chat/completions.
#pragma once

#include <boost/json/array.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// A piece of an answer, to be shown.
struct Piece {
  enum class Kind { thought, text, call };
  Kind kind;
  std::string_view text;
  bool begins_call = false;  // text is the name of a new call; its arguments follow
};

// Returns false to stop the answer.
using ShowPiece = std::function<bool(const Piece&)>;

struct Turn {
  std::string thoughts;
  std::string text;
  boost::json::array calls;  // as the next request sends them back
  int tokens = 0;
  int prompt_tokens = 0;
  int cached_tokens = 0;
  double first_s = 0;  // seconds until the first piece
  double all_s = 0;

  // Takes an event, and shows its pieces. Returns what `show` returns. Errors: the event is not JSON, or is
  // an error.
  Result<bool> take(const std::string& event, const ShowPiece& show);
};

}  // namespace octavo
