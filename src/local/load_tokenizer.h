// Loads a model's tokenizer from its directory or its GGUF file.
#pragma once

#include <string>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {

Result<Tokenizer> load_tokenizer(const std::string& path);

}  // namespace octavo
