// Default sampling parameters of a model, and its end tokens.
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
  boost::json::object sampling;       // default parameters of requests, with the file's field names; not
                                      // checked
  // First output tokens of encoder-decoder models.
  std::optional<int> decoder_start_token_id, forced_bos_token_id;
  // For speech-to-text models:
  std::vector<std::int32_t> suppress_tokens;        // token ids that must not be generated
  std::vector<std::int32_t> begin_suppress_tokens;  // token ids that must not be generated first
  bool multilingual = true;                         // false: the model supports only English
};

// Reads generation_config.json of a directory, and the end tokens of its config.json. Missing files are
// ignored. In Mistral's format, the vocabulary's end token is used unless a file names another. For a GGUF
// file: reads general.sampling, the end tokens of texts, turns and messages, and tokens with well-known
// names. Errors: corrupt, with the field that has a wrong type.
Result<GenerationConfig> load_generation_config(const std::string& path);

}  // namespace octavo
