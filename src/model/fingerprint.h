// Fingerprints: hashes with which two processes check that they have loaded the same model.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// Returns a hash of all bytes of config.json and the weight files of a directory, or of a GGUF file, as 32
// hexadecimal digits. Copies of the files have equal fingerprints. weights: directory or GGUF file whose
// weights replace the model's; "": the model's weights. Returns an error if a file is missing or cannot be
// read.
Result<std::string> model_fingerprint(const std::string& path, const std::string& weights = {});

// Returns a faster hash, which covers the files' sizes, their beginnings and samples. Its time does not
// depend on the size. Models that differ in only a few tensors may have equal hashes.
Result<std::string> sampled_fingerprint(const std::string& path, const std::string& weights = {});

}  // namespace octavo
