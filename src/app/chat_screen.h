// Shows the pieces of an answer in the terminal: thoughts dimmed, calls on separate lines.
#pragma once

#include "app/chat_turn.h"

namespace octavo {

class ChatScreen {
 public:
  // styled: standard output is a terminal. Otherwise thoughts go to standard error, so that standard output
  // has the answer alone.
  explicit ChatScreen(bool styled) : styled_(styled) {}

  void show(const Piece& piece);
  void finish();

 private:
  void change(Piece::Kind kind, bool new_call);

  bool styled_;
  bool shown_ = false;  // something of this answer has been shown
  Piece::Kind kind_ = Piece::Kind::text;
};

}  // namespace octavo
