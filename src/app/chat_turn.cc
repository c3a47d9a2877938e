#include "app/chat_turn.h"

#include <boost/json/parse.hpp>

namespace octavo {
namespace {

using boost::json::object;
using boost::json::value;

// Returns null if the value is missing.
const value* found_at(const value& root, std::string_view pointer) {
  boost::system::error_code missing;
  return root.find_pointer(pointer, missing);
}

void read_number(const value& root, std::string_view pointer, int& out) {
  const value* found = found_at(root, pointer);
  if (found != nullptr && found->is_int64()) out = static_cast<int>(found->get_int64());
}

void begin_call(const value& piece, std::string_view name, boost::json::array& calls) {
  calls.push_back(object{{"id", text_at(piece, "/id")},
                         {"type", "function"},
                         {"function", {{"name", name}, {"arguments", ""}}}});
}

void add_arguments(std::string_view arguments, boost::json::array& calls) {
  value& so_far = calls.back().at("function").at("arguments");
  so_far = std::string(so_far.get_string()) + std::string(arguments);
}

}  // namespace

std::string_view text_at(const value& root, std::string_view pointer) {
  const value* found = found_at(root, pointer);
  return found != nullptr && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

Result<bool> Turn::take(const std::string& event, const ShowPiece& show) {
  boost::system::error_code wrong;
  const value chunk = boost::json::parse(event, wrong);
  if (wrong) return failure(ErrorCode::io, "the server sent an event that is not JSON");
  if (const std::string_view error = text_at(chunk, "/error/message"); !error.empty())
    return failure(ErrorCode::internal, "{}", error);
  read_number(chunk, "/usage/completion_tokens", tokens);
  read_number(chunk, "/usage/prompt_tokens", prompt_tokens);
  read_number(chunk, "/usage/prompt_tokens_details/cached_tokens", cached_tokens);
  const value* delta = found_at(chunk, "/choices/0/delta");
  if (delta == nullptr) return true;
  bool wanted = true;
  const auto add = [&](Piece::Kind kind, std::string_view piece, std::string* whole) {
    if (piece.empty()) return;
    if (whole) *whole += piece;
    wanted = show({kind, piece}) && wanted;
  };
  std::string_view thought = text_at(*delta, "/reasoning");
  if (thought.empty()) thought = text_at(*delta, "/reasoning_content");
  add(Piece::Kind::thought, thought, &thoughts);
  add(Piece::Kind::text, text_at(*delta, "/content"), &text);
  const value* pieces = found_at(*delta, "/tool_calls");
  if (pieces != nullptr && pieces->is_array())
    for (const value& piece : pieces->get_array()) {
      const std::string_view name = text_at(piece, "/function/name");
      const std::string_view arguments = text_at(piece, "/function/arguments");
      if (!name.empty()) {
        begin_call(piece, name, calls);
        wanted = show({Piece::Kind::call, name, true}) && wanted;
      }
      if (!calls.empty()) add_arguments(arguments, calls);
      add(Piece::Kind::call, arguments, nullptr);
    }
  return wanted;
}

}  // namespace octavo
