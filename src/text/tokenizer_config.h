// The files beside tokenizer.json in a Hugging Face model directory: roles of the special tokens, and chat
// templates.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

// A special token, with its name in chat templates: {"bos_token", "<s>"}.
struct SpecialToken {
  std::string name;
  std::string text;
};

struct NamedTemplate {
  std::string name;  // "default" if the model has only one
  std::string source;
};

struct TokenizerConfig {
  std::string json;  // unchanged tokenizer_config.json; "" if missing
  std::vector<SpecialToken> special_tokens;
  std::vector<NamedTemplate> chat_templates;

  // Text of the token with this name; "": the model has no such token.
  std::string_view special_token(std::string_view name) const;

  // Returns the chat template for a request, selected as in transformers: with tools, "tool_use" if it
  // exists; otherwise the default template. "": the model has no template.
  std::string_view chat_template(bool with_tools) const;
};

// Reads tokenizer_config.json and, if they exist, special_tokens_map.json, chat_template.jinja (it overrides
// the template in the JSON) and additional_chat_templates/*.jinja. All are optional, but an existing file
// must be valid. Errors: io, corrupt.
Result<TokenizerConfig> read_tokenizer_config(const std::filesystem::path& model_dir);

// Reads a whole file. Errors: not_found, io, and invalid_argument if it is larger than bytes_max.
Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace octavo
