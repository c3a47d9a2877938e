// Reads generation_config.json: default sampling parameters of a model, and its end-of-sequence tokens.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

struct GenerationConfig {
  std::vector<std::int32_t> eos_ids;  // ascending, without duplicates
  // default sampling parameters by their names in the file; the values are not checked
  boost::json::object sampling;
  // Only for encoder-decoder models: the first output tokens.
  std::optional<int> decoder_start_token_id, forced_bos_token_id;
  // The fields from here on are only for speech-to-text models.
  std::vector<std::int32_t> suppress_tokens;        // token ids that must never be generated
  std::vector<std::int32_t> begin_suppress_tokens;  // token ids that must not be the first output token
  bool multilingual = true;
};

// Reads generation_config.json of a directory, and the end tokens in its config.json. Missing files are
// ignored. In Mistral's format, the end token of the vocabulary is used unless a file names another. For a
// GGUF file, it reads general.sampling, the tokens that end texts and chat messages, and tokens with
// well-known names. Errors: corrupt if a field has a wrong type; the message names the field.
Result<GenerationConfig> load_generation_config(const std::string& path);

}  // namespace octavo
