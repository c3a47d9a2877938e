// Reads the files of a Sentence Transformers folder. They define how a text's vector is computed from the
// vectors of its tokens.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "model/spec.h"

namespace octavo {

// Reads modules.json and the files that it names, and sets spec.head. If a module limits the length of texts,
// the function also sets spec.max_positions. It does nothing if modules.json is missing. Errors: unsupported
// (the message names the module or the type of pooling), or corrupt.
Result<> read_sentence_transformers(const std::string& directory, ModelSpec& spec);

// Prefix for each type of text ("query", "document"), from `prompts` in config_sentence_transformers.json.
// Empty if the file is missing.
using TextPrompts = std::map<std::string, std::string, std::less<>>;
Result<TextPrompts> read_text_prompts(const std::string& directory);

}  // namespace octavo
