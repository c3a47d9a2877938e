// The files of a Sentence Transformers folder: how the vectors of a model's tokens become that of a text.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "model/spec.h"

namespace octavo {

// Reads modules.json and what it names, into spec.head and, where a module bounds the length of texts,
// spec.max_positions; nothing changes where there is no modules.json. Errors: unsupported, naming a module or
// a way of pooling that is not done; corrupt.
Result<> read_sentence_transformers(const std::string& directory, ModelSpec& spec);

// Prefixes of texts of a kind ("query", "document"): the prompts of config_sentence_transformers.json;
// empty without this file. Error: corrupt.
using TextPrompts = std::map<std::string, std::string, std::less<>>;
Result<TextPrompts> read_text_prompts(const std::string& directory);

}  // namespace octavo
