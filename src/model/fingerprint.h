// Which model it is, so that two processes know whether they have the same.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// 32 hexadecimal digits, of config.json and the weight files of a directory, or of a GGUF file: of the files'
// sizes, their beginnings and samples all through them, since reading all would take as long as loading.
// Equal for copies of the same files. weights: a directory whose weight files stand in place of the model's, or a GGUF
// file; "": the model's. Errors: io.
Result<std::string> model_fingerprint(const std::string& path, const std::string& weights = {});

}  // namespace octavo
