#include "app/chat_screen.h"

#include <fmt/format.h>

#include <cstdio>

namespace octavo {
namespace {

constexpr std::string_view kDim = "\x1b[2m", kPlain = "\x1b[0m";

}  // namespace

void ChatScreen::change(Piece::Kind kind, bool new_call) {
  if (shown_ && kind == kind_ && !new_call) return;
  std::FILE* const thoughts = styled_ ? stdout : stderr;
  if (shown_ && kind_ == Piece::Kind::thought) fmt::print(thoughts, "{}\n", styled_ ? kPlain : "");
  if (shown_ && kind_ == Piece::Kind::call) fmt::print(")\n");
  if (shown_ && kind_ == Piece::Kind::text) fmt::print("\n");
  if (kind == Piece::Kind::thought) fmt::print(thoughts, "{}", styled_ ? kDim : "thoughts: ");
  if (kind == Piece::Kind::call) fmt::print("call: ");
  kind_ = kind;
  shown_ = true;
}

void ChatScreen::show(const Piece& piece) {
  change(piece.kind, piece.begins_call);
  fmt::print(piece.kind == Piece::Kind::thought && !styled_ ? stderr : stdout, "{}{}", piece.text,
             piece.begins_call ? "(" : "");
  std::fflush(stdout);
}

void ChatScreen::finish() {
  if (shown_ && kind_ == Piece::Kind::thought)
    fmt::print(styled_ ? stdout : stderr, "{}\n", styled_ ? kPlain : "");
  else
    fmt::print("{}\n", shown_ && kind_ == Piece::Kind::call ? ")" : "");
  std::fflush(stdout);
}

}  // namespace octavo
