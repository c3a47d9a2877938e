#include "serve/openai/message_reader.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>

namespace octavo::openai {

MessageDelta MessageReader::read(const AnswerPart& part) {
  MessageDelta delta{.reasoning = part.reasoning};
  if (tools_->forced)
    read_forced(part, delta);
  else if (tools_->dialect)
    read_free(part, delta);
  else
    delta.content = part.text;
  return delta;
}

MessageDelta MessageReader::read_whole(const AnswerPart& part) {
  MessageDelta delta = read(part);
  if (std::ranges::all_of(delta.calls, [](const CallDelta& call) { return is_json(call.arguments); }))
    return delta;
  return {.reasoning = part.reasoning, .content = part.text};
}

void MessageReader::read_free(const AnswerPart& part, MessageDelta& delta) {
  if (!parser_) parser_.emplace(*tools_->dialect, tools_->tools, tools_->parallel);
  ParsedText parsed = parser_->push(part.text);
  if (part.finish) parsed.append(parser_->finish());
  delta.content = std::move(parsed.content);
  delta.called = parser_->calls() > 0;
  for (CallPiece& piece : parsed.calls) {
    std::string id = std::move(piece.id);
    if (!piece.name.empty() && id.empty()) id = new_tool_call_id(tools_->dialect);
    delta.calls.push_back({piece.index, std::move(id), std::move(piece.name), std::move(piece.arguments)});
  }
}

// A named function's arguments are shown as they come; a list of calls is shown when it is whole.
void MessageReader::read_forced(const AnswerPart& part, MessageDelta& delta) {
  const ForcedTool& forced = *tools_->forced;
  const bool first = forced_text_.empty();
  forced_text_ += part.text;
  if (!forced.function.empty()) {
    delta.called = !forced_text_.empty();
    if (part.text.empty()) return;
    delta.calls.push_back({0, first ? new_tool_call_id() : "", first ? forced.function : "", part.text});
    return;
  }
  if (!part.finish) return;
  for (const boost::json::value& call : tool_calls_of(forced_text_, forced)) {
    const boost::json::object& function = call.at("function").as_object();
    delta.calls.push_back({static_cast<int>(delta.calls.size()), std::string(call.at("id").as_string()),
                           std::string(function.at("name").as_string()),
                           std::string(function.at("arguments").as_string())});
  }
  delta.called = !delta.calls.empty();
  if (!delta.called) delta.content = forced_text_;
}

}  // namespace octavo::openai
