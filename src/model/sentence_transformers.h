// Reads the files of a Sentence Transformers folder: how a text's vector is computed from its tokens'
// vectors.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "model/spec.h"

namespace octavo {

// Reads modules.json and the files that it names, and sets spec.head and, if a module limits the length of
// texts, spec.max_positions. Does nothing if modules.json is missing. Errors: unsupported, with the module or
// the type of pooling; corrupt.
Result<> read_sentence_transformers(const std::string& directory, ModelSpec& spec);

// Prefixes for each type of text ("query", "document"), from the prompts of
// config_sentence_transformers.json; empty without this file. Error: corrupt.
using TextPrompts = std::map<std::string, std::string, std::less<>>;
Result<TextPrompts> read_text_prompts(const std::string& directory);

}  // namespace octavo
