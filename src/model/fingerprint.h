// Fingerprints: hashes that two processes compare to check that they have loaded the same model.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// Hashes all bytes of config.json and of the weight files. `path` is a directory or a GGUF file. The result
// has 32 hexadecimal digits. If `weights` is not empty, its files replace the model's weights. Returns an
// error if a file is missing or cannot be read.
Result<std::string> model_fingerprint(const std::string& path, const std::string& weights = {});

// A faster hash, which covers sizes, beginnings and samples of the files. Its time does not depend on the
// model's size. Models that differ in only a few tensors may have equal hashes.
Result<std::string> sampled_fingerprint(const std::string& path, const std::string& weights = {});

}  // namespace octavo
