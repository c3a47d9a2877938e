// Splits a chat answer into reasoning, text and tool calls while it is generated. The replies of all chat
// protocols use it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/openai/output_processor.h"
#include "serve/openai/tool_choice.h"

namespace octavo::openai {

// A piece of a tool call. Only the first piece of a call has `id` and `name`.
struct CallDelta {
  int index = 0;
  std::string id{};
  std::string name{};
  std::string arguments{};
  std::size_t at = 0;  // number of bytes of MessageDelta::content before the piece
};

// Returns the number of bytes of white space before the text. Between a call and a text, it belongs to
// neither in protocols with separate items.
inline std::size_t spaces_at_start(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\r\n"), text.size());
}

// The text and calls that an AnswerPart adds to the message.
struct MessageDelta {
  std::string reasoning{};
  std::string content{};
  std::vector<CallDelta> calls{};
  bool called = false;  // whether this part or an earlier one contains a call

  // Passes the reasoning, the texts and the pieces of calls to the functions, in the order of the answer.
  template <class Thought, class Text, class Call>
  void in_order(Thought thought, Text text, Call call) const {
    auto piece = calls.begin();
    // A piece without an id is the end of a call that an earlier part has begun.
    if (piece != calls.end() && piece->id.empty()) call(*piece++);
    if (!reasoning.empty()) thought(reasoning);
    std::size_t from = 0;
    const auto text_up_to = [&](std::size_t end) {
      if (end > from) text(content.substr(from, end - from));
      from = end;
    };
    for (; piece != calls.end(); ++piece) {
      text_up_to(piece->at);
      call(*piece);
    }
    text_up_to(content.size());
  }
};

// Reads the parts of one answer in order.
class MessageReader {
 public:
  // Keeps a reference to the tools. If `answer_id` is not "", the ids of calls are derived from it; otherwise
  // they are random.
  explicit MessageReader(const ToolUse& tools, std::string answer_id = {})
      : tools_(&tools), answer_id_(std::move(answer_id)) {}

  MessageDelta read(const AnswerPart& part);
  // Reads a complete answer. An incomplete call becomes text, unless the request forces a call.
  MessageDelta read_whole(const AnswerPart& part);

 private:
  MessageDelta read(const AnswerPart& part, CallPolicy policy);
  void read_free(const AnswerPart& part, CallPolicy policy, MessageDelta& delta);
  void read_forced(const AnswerPart& part, MessageDelta& delta);
  std::string new_call_id(const grammar::ToolDialect* dialect = nullptr);

  const ToolUse* tools_;
  std::string answer_id_;
  std::uint64_t calls_ = 0;
  std::optional<ToolParser> parser_{};  // parser for calls that the model may write
  std::string forced_text_{};
};

}  // namespace octavo::openai
