// Splits a chat's answer into thoughts, text and tool calls, part by part, for all protocols.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "serve/openai/output_processor.h"
#include "serve/openai/tool_choice.h"

namespace octavo::openai {

// A piece of a call. The first piece has id and name.
struct CallDelta {
  int index = 0;
  std::string id{};
  std::string name{};
  std::string arguments{};
};

// Text and calls that a part adds to its message.
struct MessageDelta {
  std::string reasoning{};
  std::string content{};
  std::vector<CallDelta> calls{};
  bool called = false;  // the message contains a call, in this part or before
};

// Reads the parts of one answer in order.
class MessageReader {
 public:
  // Keeps a reference to the tools. answer_id: if set, equal answers have equal ids of calls.
  explicit MessageReader(const ToolUse& tools, std::string answer_id = {})
      : tools_(&tools), answer_id_(std::move(answer_id)) {}

  MessageDelta read(const AnswerPart& part);
  // Reads a whole answer at once. An incomplete call becomes text.
  MessageDelta read_whole(const AnswerPart& part);

 private:
  MessageDelta read(const AnswerPart& part, CallPolicy policy);
  void read_free(const AnswerPart& part, CallPolicy policy, MessageDelta& delta);
  void read_forced(const AnswerPart& part, MessageDelta& delta);
  std::string new_call_id(const grammar::ToolDialect* dialect = nullptr);

  const ToolUse* tools_;
  std::string answer_id_;
  std::uint64_t calls_ = 0;             // number of new ids
  std::optional<ToolParser> parser_{};  // parser for calls that the model may write
  std::string forced_text_{};           // text so far of a forced call
};

}  // namespace octavo::openai
