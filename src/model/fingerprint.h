// Which model it is, so that two processes know whether they have the same.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// 32 hexadecimal digits: a hash of all bytes of config.json and the weight files of a directory, or of a
// GGUF file. Copies of the same files have equal fingerprints. weights: a directory whose weight files
// replace the model's, or a GGUF file; "": the model's. Errors: a file is missing or cannot be read.
Result<std::string> model_fingerprint(const std::string& path, const std::string& weights = {});

// The same of the files' sizes, their beginnings and samples all through them: at once, however large they
// are. Two models that differ in few tensors may have the same one.
Result<std::string> sampled_fingerprint(const std::string& path, const std::string& weights = {});

}  // namespace octavo
