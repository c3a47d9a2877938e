// Collects one answer of `octavo chat` from the streamed events of /v1/chat/completions.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// A piece of an answer to show.
struct Piece {
  enum class Kind { thought, text, call };
  Kind kind;
  std::string_view text;
  // whether `text` is the name of a new tool call, whose arguments follow
  bool begins_call = false;
};

// Returns false to stop the answer.
using ShowPiece = std::function<bool(const Piece&)>;

struct Turn {
  std::string thoughts;
  std::string text;
  boost::json::array calls;  // tool calls, in the form in which the next request contains them
  int tokens = 0;
  int prompt_tokens = 0;
  int cached_tokens = 0;
  double first_s = 0;  // seconds until the first piece
  double all_s = 0;

  // Handles an event and shows its pieces. Returns what `show` returns, or an error if the event is an
  // error or not JSON.
  Result<bool> take(const std::string& event, const ShowPiece& show);
};

// Returns the string at a JSON pointer, or "" if it is missing or not a string.
std::string_view text_at(const boost::json::value& root, std::string_view pointer);

}  // namespace octavo
