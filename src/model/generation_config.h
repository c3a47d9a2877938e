// Sampling defaults of a model, and the tokens that end its texts.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

struct GenerationConfig {
  std::vector<std::int32_t> eos_ids;  // ascending, each once
  boost::json::object sampling;       // defaults of requests, by the file's names; not checked
  // First output tokens of models that read prompts with an encoder.
  std::optional<int> decoder_start_token_id, forced_bos_token_id;
  // For models that transcribe sound:
  std::vector<std::int32_t> suppress_tokens;        // must not be said
  std::vector<std::int32_t> begin_suppress_tokens;  // must not be said first
  bool multilingual = true;                         // if not, the model knows only English
};

// Reads generation_config.json of a directory, and the end tokens of config.json beside it; missing files
// are ignored. In Mistral's format, the end token of the vocabulary ends a text unless a file says
// otherwise. For a GGUF file: reads general.sampling, the tokens that end a text, a turn or a message, and
// tokens with well-known names. Errors: corrupt, naming the field that is not of its type.
Result<GenerationConfig> load_generation_config(const std::string& path);

}  // namespace octavo
