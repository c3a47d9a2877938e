#include "text/chat_template.h"

#include <boost/json.hpp>

#include "text/bridge.h"

namespace octavo {

namespace {

// Renders small conversations to find out what the template supports.
TemplateHabits habits_of(const ChatTemplate& chat_template, std::string_view source) {
  constexpr std::string_view kParts = R"([{"role": "user", "content": [{"type": "text", "text": "octavo"}]}])";
  constexpr std::string_view kSystem = R"([{"role": "system", "content": "first"}, {"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}, {"role": "system", "content": "octavo"}, {"role": "user", "content": "c"}])";
  const auto shows = [&](std::string_view messages) {
    const auto text = chat_template.render({.messages = messages});
    return text && text->contains("octavo") && !text->contains("'type'") && !text->contains("\"type\"");
  };
  constexpr std::string_view kBegin =
      R"([{"role": "system", "content": "octavo"}, {"role": "user", "content": "a"}])";
  constexpr std::string_view kPlain = R"([{"role": "user", "content": "a"}])";
  constexpr std::string_view kTool =
      R"([{"type": "function", "function": {"name": "octavo", "description": "b",
      "parameters": {"type": "object", "properties": {}, "required": []}}}])";
  const auto now = std::chrono::system_clock::now();
  const auto without = chat_template.render({.messages = kPlain, .now = now});
  const auto with_tool = chat_template.render({.messages = kPlain, .tools = kTool, .now = now});
  return {.takes_parts = shows(kParts),
          .knows_developer = source.contains("'developer'") || source.contains("\"developer\""),
          .system_anywhere = shows(kSystem),
          .takes_system = shows(kBegin),
          .reads_tools = without && with_tool ? *without != *with_tool : source.contains("tools"),
          .reads_calls = source.contains("tool_calls")};
}

}  // namespace

void ChatTemplate::Free::operator()(bridge::TemplateHandle* handle) const {
  bridge::octavo_template_free(handle);
}

Result<ChatTemplate> ChatTemplate::compile(std::string_view source,
                                           std::span<const SpecialToken> special_tokens,
                                           const ChatTemplateLimits& limits) {
  boost::json::object tokens;
  for (const SpecialToken& token : special_tokens) tokens[token.name] = token.text;
  const std::string tokens_json = boost::json::serialize(tokens);
  const bridge::TemplateLimits bounds{.source_bytes = limits.source_bytes,
                                      .output_bytes = limits.output_bytes,
                                      .depth = limits.depth,
                                      .fuel = limits.fuel,
                                      .built_bytes = limits.built_bytes,
                                      .fuel_per_input_byte = limits.fuel_per_input_byte,
                                      .built_bytes_per_input_byte = limits.built_bytes_per_input_byte};
  bridge::TemplateHandle* handle = nullptr;
  bridge::Bytes out;
  const auto status =
      bridge::octavo_template_open(bridge::slice(source), bridge::slice(tokens_json), bounds, &handle, &out);
  TRY_VOID(bridge::take(status, out, "chat_template"));
  ChatTemplate compiled(handle);
  compiled.habits_ = habits_of(compiled, source);
  return compiled;
}

Result<std::string> ChatTemplate::render(const ChatInput& input) const {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(input.now.time_since_epoch());
  const bridge::RenderInput bridged{
      .messages = bridge::slice(input.messages),
      .tools = bridge::slice(input.tools),
      .documents = bridge::slice(input.documents),
      .kwargs = bridge::slice(input.kwargs),
      .add_generation_prompt = input.add_generation_prompt,
      .continue_final_message = input.continue_final_message,
      .now = now.count(),
  };
  bridge::Bytes out;
  const auto status = bridge::octavo_template_render(handle_.get(), &bridged, &out);
  return bridge::take(status, out, "messages");
}

}  // namespace octavo
