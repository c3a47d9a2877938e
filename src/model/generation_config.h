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
  std::vector<std::int32_t> eos_ids;  // in ascending order, without duplicates
  boost::json::object sampling;  // default sampling parameters of requests, with the file's field names; not
                                 // checked
  // first output tokens of encoder-decoder models
  std::optional<int> decoder_start_token_id, forced_bos_token_id;
  // fields of speech-to-text models
  std::vector<std::int32_t> suppress_tokens;        // token ids that must not be generated
  std::vector<std::int32_t> begin_suppress_tokens;  // token ids that must not be the first output token
  bool multilingual = true;                         // false: the model supports only English
};

// Reads generation_config.json of a directory, and the end tokens of its config.json. Missing files are
// ignored. In Mistral's format, the vocabulary's end token is used unless a file names another. For a GGUF
// file, it reads general.sampling, the tokens that end texts and chat messages, and tokens with well-known
// names. Returns corrupt, with the name of the field, if a field has a wrong type.
Result<GenerationConfig> load_generation_config(const std::string& path);

}  // namespace octavo
