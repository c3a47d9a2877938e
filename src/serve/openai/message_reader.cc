#include "serve/openai/message_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/hash.h"

namespace octavo::openai {

MessageDelta MessageReader::read(const AnswerPart& part) { return read(part, CallPolicy::stream); }

MessageDelta MessageReader::read_whole(const AnswerPart& part) {
  MessageDelta delta = read(part, CallPolicy::whole);
  if (tools_->forced ||
      std::ranges::all_of(delta.calls, [](const CallDelta& call) { return is_json(call.arguments); }))
    return delta;
  return {.reasoning = part.reasoning, .content = part.text};
}

MessageDelta MessageReader::read(const AnswerPart& part, CallPolicy policy) {
  MessageDelta delta{.reasoning = part.reasoning};
  if (tools_->forced)
    read_forced(part, delta);
  else if (tools_->dialect)
    read_free(part, policy, delta);
  else
    delta.content = part.text;
  return delta;
}

void MessageReader::read_free(const AnswerPart& part, CallPolicy policy, MessageDelta& delta) {
  if (!parser_)
    parser_.emplace(*tools_->dialect, tools_->tools, tools_->parallel, policy, tools_->known_only);
  ParsedText parsed = parser_->push(part.text);
  if (part.finish) parsed.append(parser_->finish(part.finish == FinishReason::stop));
  delta.content = std::move(parsed.content);
  delta.called = parser_->calls() > 0;
  for (CallPiece& piece : parsed.calls) {
    std::string id = std::move(piece.id);
    if (!piece.name.empty() && id.empty()) id = new_call_id(tools_->dialect);
    delta.calls.push_back(
        {piece.index, std::move(id), std::move(piece.name), std::move(piece.arguments), piece.at});
  }
}

std::string MessageReader::new_call_id(const grammar::ToolDialect* dialect) {
  if (answer_id_.empty()) return tool_call_id(dialect, {secret_seed(), secret_seed()});
  const auto bytes = std::as_bytes(std::span(answer_id_));
  return tool_call_id(dialect, hash_bytes(HashAlgorithm::xxh3_128, bytes, calls_++));
}

// Reads forced calls. The arguments of a named function are sent as they arrive; a list of calls (`required`)
// is sent at the end of the answer.
void MessageReader::read_forced(const AnswerPart& part, MessageDelta& delta) {
  const ForcedTool& forced = *tools_->forced;
  const bool first = forced_text_.empty();
  forced_text_ += part.text;
  if (!forced.function.empty()) {
    delta.called = !forced_text_.empty();
    if (part.text.empty()) return;
    delta.calls.push_back({0, first ? new_call_id() : "", first ? forced.function : "", part.text, 0});
    return;
  }
  if (!part.finish) return;
  for (auto& [name, arguments] : forced_calls(forced_text_))
    delta.calls.push_back(
        {static_cast<int>(delta.calls.size()), new_call_id(), std::move(name), std::move(arguments), 0});
  delta.called = !delta.calls.empty();
}

}  // namespace octavo::openai
