// Splits a chat answer into reasoning, text and tool calls while it is generated. The replies of all chat
// protocols use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
};

// The text and calls that an AnswerPart adds to the message.
struct MessageDelta {
  std::string reasoning{};
  std::string content{};
  std::vector<CallDelta> calls{};
  bool called = false;  // whether this part or an earlier one contains a call
};

// Reads the parts of one answer in order.
class MessageReader {
 public:
  // Keeps a reference to the tools. If `answer_id` is not "", the ids of calls are derived from it; otherwise
  // they are random.
  explicit MessageReader(const ToolUse& tools, std::string answer_id = {})
      : tools_(&tools), answer_id_(std::move(answer_id)) {}

  MessageDelta read(const AnswerPart& part);
  // Reads a complete answer. An incomplete call becomes text.
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
