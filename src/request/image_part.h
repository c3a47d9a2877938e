// Images in prompts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "request/engine_info.h"
#include "request/sampling_params.h"

namespace octavo {

// An image, or a tile of one, that the model sees in place of some tokens of a prompt.
struct ImagePart {
  Hash128 digest = {};  // of the pixels
  int first = 0;        // position of the first of these tokens
  int tokens = 0;
  std::string pixels;  // u8 [size, size, 3]: red, green, blue; as EngineInfo::image says
};

// Errors, which name field "images": the engine sees nothing, or other sizes; parts that do not follow each other
// within the prompt.
Result<> check_images(std::span<const ImagePart> images, std::size_t prompt_tokens, const EngineInfo& engine);

// What stands for the images in the prefix keys of a prompt's first blocks, up to the last that holds a part of
// one: `identity` (CacheIdentity::digest) and the digests of all images in the block with their places. Empty
// without images.
std::vector<Hash128> image_identities(Hash128 identity, std::span<const ImagePart> images, int block_size);

}  // namespace octavo
