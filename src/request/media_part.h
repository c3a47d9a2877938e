// Media of a request: images, videos and sounds in the prompt, and sources (sounds or texts) that an
// encoder reads in addition to the prompt.
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

// A part of the prompt: an image, a tile, some frames of a video, or a sound. Its tokens replace tokens of
// the prompt. A MediaPart can also be a source: a sound (EngineInfo::sound) or a text (EngineInfo::source)
// that prompt and output read by cross attention.
struct MediaPart {
  Hash128 digest = {};  // hash of `bytes`
  int first = 0;        // position of the first token that the part replaces
  int tokens = 0;       // number of tokens that the part replaces; 0 for a source
  // Image: RGB, u8 [height, width, 3], with the size in EngineInfo::image. Sound: f32. Text: token ids,
  // i32.
  std::string bytes;
  // For an image of variable size, the number of columns of the token grid. For a sound in the prompt or a
  // text, the number of encoder rows that the part fills.
  int columns = 0;
  bool row_breaks = false;  // whether a separate token follows each row of the grid except the last one
  // A grid of square tiles (EngineInfo::ImageRule::tiled). `bytes` contains the complete image as one tile
  // (not with whole_last), followed by the tiles in order. `top`, `left`, `rows` and `columns` give the
  // region of the token grid that shows the image. The region takes out_rows x out_columns tokens in the
  // prompt, plus one token after each row, plus the tokens of the complete image.
  struct Tiles {
    int tile_rows = 0, tile_columns = 0;
    int top = 0, left = 0, rows = 0, columns = 0;
    int out_rows = 0, out_columns = 0;
    int patch_rows = 0, patch_columns = 0;  // number of patches that show the image; only with whole_last

    int tiles() const { return 1 + tile_rows * tile_columns; }
    bool operator==(const Tiles&) const = default;
  };
  Tiles tiles = {};
  // Number of frames in `bytes`, which have the same size and together take the tokens of one frame. 0: an
  // image. `time` is the number of steps on the time axis since the beginning of the video. `continues` is
  // true if the part belongs to the same video as the part before.
  int frames = 0;
  int time = 0;
  bool continues = false;
  // Whether `bytes` contains embeddings of the complete prompt, f32 [tokens, EngineInfo::prompt_embeds],
  // which replace the output of the embedding layer.
  bool embeds = false;

  int span() const { return tokens + (row_breaks ? tokens / columns - 1 : 0); }
};

std::int64_t tokens_of(const MediaPart::Tiles& tiles, const EngineInfo::ImageRule& rule);

// Checks the media of a prompt. The field of an error says what is wrong.
//   "images": the model does not accept an image or a sound, or its size.
//   "images": parts overlap or exceed the prompt.
//   "file": the model needs exactly one sound source.
//   "prompt": the model's encoder needs exactly one text.
//   "prompt_embeds": the model does not accept embeddings or their size.
Result<> check_media(std::span<const MediaPart> images, std::size_t prompt_tokens, const EngineInfo& engine);

// Returns one hash for each block, up to the last block that contains tokens of an image. The hash covers
// `identity` (CacheIdentity::digest) and the digests and positions of the block's images. PrefixHasher adds
// the hash to the block's key, so that prompts with different images have different keys.
std::vector<Hash128> media_identities(Hash128 identity, std::span<const MediaPart> images, int block_size);

std::vector<std::pair<int, int>> media_spans(std::span<const MediaPart> images);

// Each token has a position on three axes: time, height and width (Wang et al., "Qwen2-VL", 2024). Appends
// the positions of tokens [first, first + count) of prompt and output to `axes`. An image token's position is
// the position where the image begins, plus the token's row and column in the grid; in a video, the frame's
// time is added too. The token after an image gets the image's largest position plus one.
using GridPositions = std::array<std::vector<std::int32_t>, 3>;
void append_grid_positions(std::span<const MediaPart> images, int first, int count, GridPositions& axes);

// Makes a source from a text of at least one token, for an encoder.
MediaPart source_of(std::span<const TokenId> text);

// Hashes `identity` with the complete prompt: its tokens and its media. It is for models in which all tokens
// of a prompt see each other, so that only equal prompts have equal keys and values.
Hash128 with_prompt(Hash128 identity, std::span<const TokenId> prompt, std::span<const MediaPart> media);

// Hashes `identity` with the digests of all sources among `images`. Returns `identity` if there are no
// sources.
Hash128 with_sources(Hash128 identity, std::span<const MediaPart> images);

}  // namespace octavo
