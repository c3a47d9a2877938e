// Finds the file with the image encoder of a GGUF model: llama.cpp's mmproj file.
#pragma once

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Sets model.mmproj, if it is empty, to the mmproj file in the folder of the GGUF file model.dir that fits
// the language model, or to kNoMmproj. If the only file does not fit, logs why. With `of_hub`, the model is
// in the hub's cache: the file may also be in the folder above, and of several files, the one that a download
// takes counts. Returns an error on "mmproj" if several files fit.
Result<> find_mmproj(ModelOptions& model, bool of_hub);

}  // namespace octavo
