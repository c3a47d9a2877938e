// Reads the files beside tokenizer.json in a Hugging Face model folder: roles of special tokens, and chat
// templates.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

// A special token and its name in chat templates: {"bos_token", "<s>"}.
struct SpecialToken {
  std::string name;
  std::string text;
};

struct NamedTemplate {
  std::string name;  // "default" if the model has one template
  std::string source;
};

struct TokenizerConfig {
  // tokenizer_config.json, completed with fields of the other files; "" if no file exists
  std::string json;
  std::vector<SpecialToken> special_tokens;
  std::vector<NamedTemplate> chat_templates;

  // Returns the token with this name; "": the model has none.
  std::string_view special_token(std::string_view name) const;

  // Returns the template that transformers selects for a request: with tools, "tool_use" if it exists,
  // otherwise "default". "": the model has no template.
  std::string_view chat_template(bool with_tools) const;
};

// Reads tokenizer_config.json and the files beside it, as transformers 4.57 and 5.24 do. All files are
// optional, but an existing file must be valid. Returns io or corrupt.
//
// Without added_tokens_decoder, special_tokens_map.json overrides the special tokens, and added_tokens.json
// lists more tokens. Without tokenizer_class, config.json's tokenizer_class or model_type decides.
// chat_template.jinja overrides the template in the JSON, and additional_chat_templates/*.jinja add
// templates. chat_template.json is read for models with a processor.
Result<TokenizerConfig> read_tokenizer_config(const std::filesystem::path& model_dir);

// Applies the rules of the tokenizer class (tokenizer_class.h). Also adds bos_token and eos_token of the
// class if the config lacks them and tokenizer_json contains them.
void apply_class(TokenizerConfig& config, std::string_view tokenizer_json);

// Returns not_found, io, or invalid_argument if the file is larger than bytes_max.
Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace octavo
