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
  std::string json;  // tokenizer_config.json with the fields of the other files; "" if all are missing
  std::vector<SpecialToken> special_tokens;
  std::vector<NamedTemplate> chat_templates;

  // Text of the token with this name; "": the model has no such token.
  std::string_view special_token(std::string_view name) const;

  // Returns the chat template for a request, selected as in transformers: with tools, "tool_use" if it
  // exists; otherwise the default template. "": the model has no template.
  std::string_view chat_template(bool with_tools) const;
};

// Reads tokenizer_config.json and the files beside it, as transformers 4.57 and 5.24 do. All are optional,
// but an existing file must be valid. Errors: io, corrupt.
//
// Without added_tokens_decoder, special_tokens_map.json overrides the special tokens, and added_tokens.json
// lists further tokens. Without tokenizer_class, config.json's tokenizer_class or model_type decides.
// chat_template.jinja overrides the template in the JSON; additional_chat_templates/*.jinja add templates.
// chat_template.json is read for models with a processor.
Result<TokenizerConfig> read_tokenizer_config(const std::filesystem::path& model_dir);

// Applies the rules of the tokenizer class to config.json (tokenizer_class.h). Also adds the bos_token and
// eos_token of the class, if the config does not have the field and tokenizer_json contains the token.
void apply_class(TokenizerConfig& config, std::string_view tokenizer_json);

// Reads a whole file. Errors: not_found, io, and invalid_argument if it is larger than bytes_max.
Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace octavo
