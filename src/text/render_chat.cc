// Renders chat templates for tools/goldens/check_real_templates.py. Each input line is a JSON object
// {"template", "special_tokens", "messages", "tools", "documents", "kwargs", "add_generation_prompt",
// "now"}. Each output line is {"text"} or {"error"}.
#include <boost/json.hpp>
#include <iostream>
#include <string>

#include "text/chat_template.h"

namespace {

namespace json = boost::json;
using octavo::ChatTemplate;

octavo::Result<std::string> render(const json::object& line) {
  std::vector<octavo::SpecialToken> tokens;
  for (const auto& [name, text] : line.at("special_tokens").as_object()) {
    tokens.push_back({std::string(name), std::string(text.as_string())});
  }
  const auto text_of = [&](std::string_view key) {
    return line.contains(key) ? json::serialize(line.at(key)) : std::string();
  };
  const std::string messages = text_of("messages"), tools = text_of("tools"),
                    documents = text_of("documents"), kwargs = text_of("kwargs");
  TRY(const ChatTemplate chat, ChatTemplate::compile(line.at("template").as_string(), tokens));
  return chat.render({.messages = messages,
                      .tools = tools,
                      .documents = documents,
                      .kwargs = kwargs,
                      .add_generation_prompt = line.at("add_generation_prompt").as_bool(),
                      .continue_final_message = line.contains("continue_final_message"),
                      .now = std::chrono::system_clock::from_time_t(line.at("now").as_int64())});
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const octavo::Result<std::string> text = render(json::parse(line).as_object());
    std::cout << (text ? json::value{{"text", *text}} : json::value{{"error", text.error().message}}) << "\n";
  }
}
