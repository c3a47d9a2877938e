// Images, videos and sounds in prompts, and the sound or text beside a prompt that an encoder reads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "request/engine_info.h"
#include "request/sampling_params.h"

namespace octavo {

// An image, a tile of one, some frames of a video, or a sound, which replaces some tokens of a prompt.
// Or a source, to which the prompt and the answer attend: a sound (EngineInfo::sound) or a text
// (EngineInfo::source).
struct MediaPart {
  Hash128 digest = {};  // hash of the bytes
  int first = 0;        // position of the first of these tokens
  int tokens = 0;       // 0 for a source
  std::string bytes;   // u8 [height, width, 3]: red, green, blue, as EngineInfo::image says; f32 of a sound; token ids, i32, of a text
  // Columns of the grid of tokens, where images have any size. For a sound in the prompt, or a text: rows
  // that it fills in the encoder.
  int columns = 0;
  bool row_breaks = false;  // the prompt has a separate token between rows of the grid
  // A grid of square tiles (EngineInfo::ImageRule::tiled). `bytes` has one tile with the whole image (not
  // with whole_last), then the tiles from top to bottom. The fields give the part of the token grid that
  // shows the image, and the number of output tokens. The image takes the output tokens, one more after each
  // row, and the tokens of the whole image.
  struct Tiles {
    int tile_rows = 0, tile_columns = 0;
    int top = 0, left = 0, rows = 0, columns = 0;
    int out_rows = 0, out_columns = 0;
    int patch_rows = 0, patch_columns = 0;  // with whole_last: of the grid's patches, those that show the image

    int tiles() const { return 1 + tile_rows * tile_columns; }
    bool operator==(const Tiles&) const = default;
  };
  Tiles tiles = {};
  // `bytes` has `frames` frames of one size, from top to bottom, which together take the tokens of one frame;
  // 0: an image. `time`: steps on the time axis since the begin of the video. The video begins with this part
  // or, if `continues`, with the part before.
  int frames = 0;
  int time = 0;
  bool continues = false;

  // Positions from the first of its tokens to the last.
  int span() const { return tokens + (row_breaks ? tokens / columns - 1 : 0); }
};

// Tokens of an image of tiles.
std::int64_t tokens_of(const MediaPart::Tiles& tiles, const EngineInfo::ImageRule& rule);

// Errors name the field.
// "images": the model takes no images or sounds, or not this size; parts overlap or exceed the prompt.
// "file": the model needs exactly one sound beside the prompt.
// "prompt": the model needs exactly one text for its encoder.
Result<> check_media(std::span<const MediaPart> images, std::size_t prompt_tokens, const EngineInfo& engine);

// The images' part in the prefix keys of a prompt's first blocks, up to the last block with a part
// of an image: `identity` (CacheIdentity::digest) and, for all images in the block, digests and positions.
// Empty without images.
std::vector<Hash128> media_identities(Hash128 identity, std::span<const MediaPart> images, int block_size);

// Positions [first, end) of each.
std::vector<std::pair<int, int>> media_spans(std::span<const MediaPart> images);

// Appends to `axes` the positions of tokens [first, first + count) of the prompt and its answer on the axes
// of time, height and width (Wang et al., "Qwen2-VL", 2024). An image's tokens have the position at which it
// begins, plus their row and column in its grid, and in a video plus their frame's time. The next token
// follows the furthest of them.
using GridPositions = std::array<std::vector<std::int32_t>, 3>;
void append_grid_positions(std::span<const MediaPart> images, int first, int count, GridPositions& axes);

// The text that an encoder reads: at least one token.
MediaPart source_of(std::span<const TokenId> text);

// The identity of a prompt with all sources among `images`; without sources: `identity`.
Hash128 with_sources(Hash128 identity, std::span<const MediaPart> images);

}  // namespace octavo
