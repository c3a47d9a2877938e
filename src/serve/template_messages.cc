#include "serve/template_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/exact_json.h"
#include "base/quoted_text.h"
#include "serve/tool_texts.h"

namespace octavo {
namespace {

namespace json = boost::json;

json::array as_parts(json::value content) {
  if (content.is_array()) return std::move(content.get_array());
  return {json::object{{"type", "text"}, {"text", std::move(content)}}};
}

std::string as_text(const ContentRules& rules, const json::array& parts) {
  std::string media, text;
  bool first = true;
  for (const json::value& part : parts) {
    const json::object& fields = part.get_object();
    const std::string_view type = fields.at("type").get_string();
    if (type != "text") {
      media += media.empty() ? "" : "\n";
      if (rules.token) media += rules.token(openai::media_kind(type));
    } else {
      text += std::exchange(first, false) ? "" : "\n";
      text += std::string_view(fields.at("text").get_string());
    }
  }
  if (media.empty()) return text;
  return text.empty() ? media : media + "\n" + text;
}

bool is_system(const json::value& message) { return message.at("role").get_string() == "system"; }

void merge_system(const ContentRules& rules, json::array& messages) {
  std::string text;
  json::array others;
  for (json::value& message : messages) {
    if (!is_system(message)) {
      others.push_back(std::move(message));
      continue;
    }
    const json::value& content = message.at("content");
    const std::string one =
        content.is_array() ? as_text(rules, content.get_array()) : std::string(content.get_string());
    if (!text.empty() && !one.empty()) text += "\n\n";
    text += one;
  }
  others.insert(others.begin(), json::object{{"role", "system"}, {"content", text}});
  messages = std::move(others);
}

void fit_roles(const ContentRules& rules, const TemplateHabits& habits, json::array& messages) {
  bool later = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    json::object& message = messages[i].get_object();
    if (!habits.knows_developer && message.at("role").get_string() == "developer") message["role"] = "system";
    later = later || (i > 0 && is_system(messages[i]));
  }
  if (later && !habits.system_anywhere) merge_system(rules, messages);
}

// Templates print messages of the usual roles, or raise an exception.
bool is_unusual(const json::value& message) {
  constexpr std::string_view kUsual[] = {"system", "developer", "user", "assistant", "tool"};
  const json::value& content = message.at("content");
  const bool empty = content.is_string() ? content.get_string().empty() : content.is_null();
  const std::string_view role = message.at("role").get_string();
  return !empty && std::ranges::find(kUsual, role) == std::end(kUsual);
}

// A text that no template contains, for the role with this index.
std::string marker(std::size_t index) { return fmt::format("octavo-role-{}-of-message", index); }

}  // namespace

Result<std::string> messages_for_template(const ChatTemplate& chat_template, const openai::ChatPrompt& prompt,
                                          const ContentRules& rules) {
  const TemplateHabits& habits = chat_template.habits();
  const bool writes = rules.write_tools && !habits.reads_tools;
  const ToolTexts texts{.tools = writes && prompt.tools_as_text ? prompt.tools : std::string_view(),
                        .calls = writes && prompt.calls && !habits.reads_calls,
                        .takes_system = habits.takes_system};
  const bool changes = texts.calls || !texts.tools.empty();
  if (prompt.plain && !changes && !rules.media && rules.format != ContentFormat::parts)
    return prompt.messages;
  const ContentFormat format = rules.format;
  const bool parts = format == ContentFormat::automatic ? habits.takes_parts : format == ContentFormat::parts;
  boost::system::error_code ignored;  // cannot fail, because the server wrote this text
  json::value all = parse_exact_json(prompt.messages, ignored);
  fit_roles(rules, habits, all.get_array());
  for (json::value& message : all.get_array()) {
    json::value& content = message.at("content");
    if (content.is_null()) continue;
    if (parts && (rules.media || content.is_array() || format == ContentFormat::parts))
      content = as_parts(std::move(content));
    else if (content.is_array())
      content = as_text(rules, content.get_array());
  }
  if (changes) TRY_VOID(write_tools(texts, all.get_array()));
  return exact_json_text(all);
}

Result<> check_roles(const ChatTemplate& chat_template, ChatInput input, std::string_view text) {
  constexpr std::size_t kRendersMax = 8;  // bounds the work of a request with many roles
  boost::system::error_code ignored;      // cannot fail, because the server wrote this text
  const json::value all = parse_exact_json(input.messages, ignored);
  // The contents of each unusual role are replaced by a marker. A role whose marker is not printed has no
  // effect, or one that does not depend on its text, so its messages are then left out.
  std::vector<std::string> roles;
  json::value marked = all;
  for (json::value& message : marked.get_array()) {
    if (!is_unusual(message)) continue;
    const std::string role(message.at("role").get_string());
    const auto at = std::ranges::find(roles, role) - roles.begin();
    if (at == std::ssize(roles)) roles.push_back(role);
    json::value& content = message.at("content");
    const json::string printed(marker(static_cast<std::size_t>(at)));
    content = content.is_array() ? json::value(as_parts(printed)) : json::value(printed);
  }
  if (roles.empty()) return {};
  const auto rendered = [&](const json::value& messages) {
    const std::string given = exact_json_text(messages);
    input.messages = given;
    return chat_template.render(input);
  };
  const auto with_markers = rendered(marked);
  if (!with_markers) return {};
  std::size_t renders = 0;
  for (std::size_t i = 0; i < roles.size() && renders < kRendersMax; ++i) {
    if (with_markers->contains(marker(i))) continue;
    json::array others;
    for (const json::value& message : all.get_array())
      if (std::string_view(message.at("role").get_string()) != roles[i]) others.push_back(message);
    ++renders;
    if (!others.empty()) {
      const auto without = rendered(others);
      if (!without || *without != text) continue;
    }
    return invalid(
        "messages",
        "the model's chat template prints nothing for the role {}: use system, user, assistant or tool",
        quoted_text(roles[i]));
  }
  return {};
}

}  // namespace octavo
