// Images and videos in prompts, and what stands beside them: sound, or the text that an encoder reads.
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

// An image, a tile of one, or some frames of a video that the model sees in place of some tokens of a prompt, or a
// sound that it hears there; or a source, which all of the prompt and of the answer looks at: a sound
// (EngineInfo::sound) or a text (EngineInfo::source).
struct MediaPart {
  Hash128 digest = {};  // of the bytes
  int first = 0;        // position of the first of these tokens
  int tokens = 0;       // of a source: none
  std::string bytes;   // u8 [height, width, 3]: red, green, blue, as EngineInfo::image says; f32 of a sound; token ids, i32, of a text
  // Of the grid of tokens, where images have any size. Of a sound in the prompt, or of a text: rows of the encoder that
  // it fills.
  int columns = 0;
  bool row_breaks = false;  // between the rows of the grid the prompt has one token of its own
  // Of a grid of square tiles, which `bytes` has one below the other, behind a tile of the whole image
  // (EngineInfo::ImageRule::tiled; without it, where that is whole_last): the tokens of the grid that count, and how
  // many are made of them. The image stands for those of the whole one and for these, with one more behind each row.
  struct Tiles {
    int tile_rows = 0, tile_columns = 0;
    int top = 0, left = 0, rows = 0, columns = 0;
    int out_rows = 0, out_columns = 0;
    int patch_rows = 0, patch_columns = 0;  // with whole_last: of the grid's patches, those that show the image

    int tiles() const { return 1 + tile_rows * tile_columns; }
    bool operator==(const Tiles&) const = default;
  };
  Tiles tiles = {};
  // Of a video: `bytes` has so many frames of one size, one below the other, which stand for the tokens of one;
  // 0: this is an image. They are seen so many steps of the axis of time behind where the video begins, which is
  // here, or, where it `continues`, where the part before begins.
  int frames = 0;
  int time = 0;
  bool continues = false;

  // Positions from the first of its tokens to the last.
  int span() const { return tokens + (row_breaks ? tokens / columns - 1 : 0); }
};

// Tokens of an image of tiles.
std::int64_t tokens_of(const MediaPart::Tiles& tiles, const EngineInfo::ImageRule& rule);

// Errors, which name field "images": the engine sees and hears nothing, or other sizes; parts that do not
// follow each other within the prompt. Field "file": the engine hears beside prompts, and there is not one
// sound of its size. Field "prompt": the engine reads prompts with an encoder, and there is not one text for it.
Result<> check_media(std::span<const MediaPart> images, std::size_t prompt_tokens, const EngineInfo& engine);

// What stands for the images in the prefix keys of a prompt's first blocks, up to the last that holds a part
// of one: `identity` (CacheIdentity::digest) and the digests of all images in the block with their places.
// Empty without images.
std::vector<Hash128> media_identities(Hash128 identity, std::span<const MediaPart> images, int block_size);

// Positions [first, end) of each.
std::vector<std::pair<int, int>> media_spans(std::span<const MediaPart> images);

// Where tokens [first, first + count) of a prompt with these images, and of the answer behind it, stand on
// the axes of time, height and width (Wang et al., "Qwen2-VL", 2024), behind what `axes` has: an image's
// tokens stand where it begins, as far down and right as in its grid, those of a video's frames as far on in time, too;
// what follows stands behind the furthest of them.
using GridPositions = std::array<std::vector<std::int32_t>, 3>;
void append_grid_positions(std::span<const MediaPart> images, int first, int count, GridPositions& axes);

// The text that an encoder reads: at least one token.
MediaPart source_of(std::span<const TokenId> text);

// The identity of a prompt that all sources among `images` have a part in: with none of them, as it is.
Hash128 with_sources(Hash128 identity, std::span<const MediaPart> images);

}  // namespace octavo
