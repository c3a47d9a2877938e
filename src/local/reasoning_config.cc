#include "local/reasoning_config.h"

#include "base/quoted_text.h"

namespace octavo {

Result<ReasoningConfig> read_reasoning_config(const boost::json::object& config) {
  ReasoningConfig read;
  for (const auto& [name, value] : config) {
    std::string* const text = name == "reasoning_parser"      ? &read.parser
                              : name == "reasoning_start_str" ? &read.begin
                              : name == "reasoning_end_str"   ? &read.end
                                                              : nullptr;
    if (text == nullptr)
      return invalid(std::string_view(name),
                     "there is no such field: use reasoning_parser, reasoning_start_str, reasoning_end_str");
    if (value.is_null()) continue;
    if (!value.is_string()) return invalid(std::string_view(name), "must be a string");
    *text = std::string_view(value.get_string());
  }
  return read;
}

Result<> check_reasoning_config(const ReasoningConfig& config, const openai::ReasoningRule* rule,
                                const Tokenizer& tokenizer) {
  if (config.begin.empty() && config.end.empty()) return {};
  if (rule == nullptr || !rule->tokens())
    return invalid("reasoning-config", "needs a --reasoning-parser whose reasoning is between two tokens");
  const auto check = [&](std::string_view field, const std::string& text, std::int32_t token) -> Result<> {
    if (text.empty() || tokenizer.id_of(text) == token) return {};
    return invalid(field, "{} is not the mark of the reasoning parser, which is {}: leave the field out",
                   quoted_text(text),
                   quoted_text(tokenizer.decode(std::span(&token, 1), false).value_or("")));
  };
  TRY_VOID(check("reasoning_start_str", config.begin, rule->begin));
  return check("reasoning_end_str", config.end, rule->end);
}

}  // namespace octavo
