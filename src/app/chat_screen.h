// Shows an answer in the terminal: reasoning is dimmed, and tool calls are on separate lines.
#pragma once

#include "app/chat_turn.h"

namespace octavo {

class ChatScreen {
 public:
  // styled: standard output is a terminal. Otherwise reasoning goes to standard error, and standard output
  // only gets the answer.
  explicit ChatScreen(bool styled) : styled_(styled) {}

  void show(const Piece& piece);
  void finish();

 private:
  void change(Piece::Kind kind, bool new_call);

  bool styled_;
  bool shown_ = false;  // whether a piece of this answer was shown
  Piece::Kind kind_ = Piece::Kind::text;
};

}  // namespace octavo
