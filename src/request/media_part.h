// Images, videos and sounds in prompts, and the sources (sounds or texts) that an encoder reads in addition
// to the prompt.
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

// An image, a tile of an image, some frames of a video, or a sound, which replaces some tokens of a
// prompt. It can also be a source to which the prompt and the answer attend with cross attention: a sound
// (EngineInfo::sound) or a text (EngineInfo::source).
struct MediaPart {
  Hash128 digest = {};  // hash of the bytes
  int first = 0;        // position of the first token that the part replaces
  int tokens = 0;       // number of tokens that the part replaces; 0 for a source
  std::string bytes;    // Image: u8 [height, width, 3] in the order red, green, blue, of the size in
                        // EngineInfo::image. Sound: f32. Text: token ids, i32.
  // If images have any size: number of columns of the token grid. For a sound in the prompt, or a text:
  // number of encoder rows that the part fills.
  int columns = 0;
  bool row_breaks = false;  // whether a separate token is between two rows of the grid
  // A grid of square tiles (EngineInfo::ImageRule::tiled). `bytes` has one tile with the complete image (not
  // with whole_last), then the tiles in order. The fields give the part of the token grid that shows the
  // image, and the number of tokens of this part in the prompt. The image takes these tokens, one more token
  // after each row, and the tokens of the complete image.
  struct Tiles {
    int tile_rows = 0, tile_columns = 0;
    int top = 0, left = 0, rows = 0, columns = 0;
    int out_rows = 0, out_columns = 0;
    int patch_rows = 0, patch_columns = 0;  // with whole_last: patches that show the image

    int tiles() const { return 1 + tile_rows * tile_columns; }
    bool operator==(const Tiles&) const = default;
  };
  Tiles tiles = {};
  // Number of frames in `bytes`, one after another and of the same size; together they take the tokens
  // of one frame. 0: an image. time: steps on the time axis since the beginning of the video. If
  // `continues`, this part continues the video of the part before; otherwise a video begins here.
  int frames = 0;
  int time = 0;
  bool continues = false;
  // Whether `bytes` has the input of the first layer for the complete prompt, f32 [tokens,
  // EngineInfo::prompt_embeds].
  bool embeds = false;

  // Returns the number of positions from the part's first token to its last token.
  int span() const { return tokens + (row_breaks ? tokens / columns - 1 : 0); }
};

// Returns the number of tokens that a tiled image takes.
std::int64_t tokens_of(const MediaPart::Tiles& tiles, const EngineInfo::ImageRule& rule);

// Checks the media of a prompt. Errors name one of these fields.
// "images": the model accepts no images or sounds, or not of this size; parts overlap or exceed the prompt.
// "file": the model needs exactly one sound in addition to the prompt.
// "prompt": the model needs exactly one text for its encoder.
// "prompt_embeds": the model takes no embeddings, or not of this size.
Result<> check_media(std::span<const MediaPart> images, std::size_t prompt_tokens, const EngineInfo& engine);

// Returns the image part of the prefix keys of a prompt's first blocks, up to the last block with a part of
// an image: `identity` (CacheIdentity::digest), hashed with the digests and positions of all images in the
// block. It is empty without images.
std::vector<Hash128> media_identities(Hash128 identity, std::span<const MediaPart> images, int block_size);

std::vector<std::pair<int, int>> media_spans(std::span<const MediaPart> images);

// Appends to `axes` the positions of tokens [first, first + count) of prompt and output, on the axes of time,
// height and width (Wang et al., "Qwen2-VL", 2024). The position of an image token is the position at which
// the image begins, plus its row and column in the grid; in a video, also plus the frame's time. The token
// after an image gets the largest of these positions plus one.
using GridPositions = std::array<std::vector<std::int32_t>, 3>;
void append_grid_positions(std::span<const MediaPart> images, int first, int count, GridPositions& axes);

// Makes a source from the text that an encoder reads; the text has at least one token.
MediaPart source_of(std::span<const TokenId> text);

// Returns the identity of a prompt with all sources among `images`. Without sources, it is `identity`.
Hash128 with_sources(Hash128 identity, std::span<const MediaPart> images);

}  // namespace octavo
