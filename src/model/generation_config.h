// How a model's makers want it sampled, and which tokens end its texts.
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
  // Of models that read prompts with an encoder: what their own text begins with.
  std::optional<int> decoder_start_token_id, forced_bos_token_id;
  // Of models that transcribe sound:
  std::vector<std::int32_t> suppress_tokens;        // must not be said
  std::vector<std::int32_t> begin_suppress_tokens;  // must not be said first
  bool multilingual = true;                         // it knows other languages than English
};

// Reads generation_config.json of a directory, and the end tokens of config.json beside it; files that are
// not there say nothing. In Mistral's own format texts end with its vocabularies' end where no file says
// otherwise. Of a GGUF file: general.sampling, the tokens that end a text, a turn or a message,
// and those that are known to by their names. Errors: corrupt, naming the field that is not of its type.
Result<GenerationConfig> load_generation_config(const std::string& path);

}  // namespace octavo
