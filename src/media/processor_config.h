// Configuration of a model's image preprocessing. model/image_processor.h reads it from a checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "media/resize.h"

namespace octavo::media {

// Cuts the image into square tiles and adds the whole image as the last part (tiles.h).
struct TileRule {
  int longest_edge = 0;  // length of the longer side after the first scaling, in pixels
  int tile_size = 0;     // side of a square tile, in pixels
  bool split = true;     // false: the whole image becomes one tile
};

// Cuts the image into a grid of square tiles with about the image's aspect ratio, and adds the whole image
// as the last part (ratio_tiles.h).
struct RatioTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  int tiles_min = 1;
  int tiles_max = 12;
  // true: the grid into which the image fits with the least scaling, instead of the one with its aspect ratio
  bool fits = false;
  bool numbered = false;  // a text with the number of the tile precedes each tile (NVLM-D)
  // true: the tiles of a second grid of at least 3 tiles, with other numbers of rows and of columns, come
  // first. Only if a prompt has one image (H2OVL).
  bool twice = false;
  // How the grid is chosen without `fits`.
  enum class Choice : std::uint8_t {
    ratio,  // by the aspect ratio, then by the number of tiles
    area,  // by the product of both, in which up to 60 % of the image's pixels count (Llama Nemotron Nano VL)
  };
  Choice choice = Choice::ratio;
};

// Makes one square part (square.h).
struct SquareRule {
  int size = 0;       // side, in pixels
  bool crop = false;  // true: scale the shorter side to `size` and crop the centre; false: stretch the image
};

// Makes one part of about the image's own size (any_size.h).
struct AnySizeRule {
  int unit = 0;  // pixels; both sides become multiples of the unit
  std::int64_t pixels_min = 0;
  std::int64_t pixels_max = 0;
  // For videos with VideoRule::stamped, whose size limits apply to all frames together. any_size_grid()
  // compares the pixels of `rounded_weight` frames with the limits, and computes the scale from the pixels of
  // `weight` frames.
  int weight = 1;
  int rounded_weight = 1;
  // How images with a side below `unit` grow first.
  enum class Growth : std::uint8_t {
    none,
    both,     // GLM-4.1V: scales both sides, so that the shorter one has `unit` pixels
    in_turn,  // PaddleOCR-VL: does the same for the height, then for the width
    rounded,  // LFM2-VL: rounds each side up to `unit` pixels
  };
  Growth growth = Growth::none;
};

// Makes one part of any size. Cuts larger images into square tiles first (split_tiles.h).
struct SplitTileRule {
  AnySizeRule whole;     // size of the whole image
  RatioTileRule tiles;   // with tiles_max 1, no image is cut
  int patch_size = 0;    // pixels
  double tolerance = 2;  // images with more than tolerance * whole.pixels_max pixels are cut
};

// Makes one part with the image's aspect ratio (longest_edge.h).
struct LongestEdgeRule {
  // maximum length of the longer side in pixels, before both sides become multiples of `unit`
  int longest = 0;
  int unit = 0;  // pixels
};

// Makes one part with the image's aspect ratio, as large as tokens_max tokens permit (token_budget.h).
struct TokenBudgetRule {
  int unit = 0;  // side of a token in pixels; both sides of the image become multiples of it
  int tokens_max = 0;
};

// Makes one part of about the image's own size, within limits of patches (patch_search.h).
struct PatchSearchRule {
  int unit = 0;  // side of a patch in pixels
  int patches_min = 0, patches_max = 0;
};

// Makes one part of about the image's own size, in whole tokens (patch_budget.h).
struct PatchBudgetRule {
  int unit = 0;   // side of a patch in pixels
  int merge = 1;  // side of a token in patches
  int patches_min = 0, patches_max = 0;
};

// Makes one part of the image's own size, on black (padded_size.h).
struct PaddedSizeRule {
  int unit = 0;         // side of a token in pixels; both sides become multiples of it
  int patch_size = 0;   // pixels
  int patches_max = 0;  // before padding
  int side_max = 0;     // maximum length of a side in patches
};

// Makes square tiles in a grid that holds the image, on black, and a tile of the whole image
// (canvas_tiles.h).
struct CanvasTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  int tiles_max = 16;
};

// Makes a tile of the whole image, then square tiles in one of several grids (pinned_tiles.h).
struct PinnedTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  struct Grid {
    int rows = 0, columns = 0;
  };
  std::vector<Grid> grids = {};
  // If a grid has more tiles, its tokens are interpolated to the tokens of tiles_most tiles; 0: no limit.
  int tiles_most = 0;
};

// Makes square tiles in a grid that holds the image, on white (padded_tiles.h).
struct PaddedTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  int tiles_max = 0;
  int patch_size = 0;     // side of a patch in pixels; patches without image pixels are masked
  bool as_torch = false;  // true: resample as torch does; false: as Pillow does
  // true: the image fills the grid in its longer direction and is in the middle of the other one, and all
  // patches count (Phi-3-vision)
  bool centred = false;
};

// A video that a client sends as a list of images.
struct FrameList {
  int frames = 0;              // number of images that are used, from the first on; 0: all
  std::vector<int> indices{};  // index of each image in the source video; empty: 0, 1, ..
  int source_frames = 0;       // number of frames of the source video; 0: that of the images
};

// Selection and size of a video's frames (video.h).
struct VideoRule {
  AnySizeRule size;
  int frames = 2;  // frames per part; a part has the same number of tokens as an image of its size
  // Qwen3-VL: the size limits apply to all frames together, and a timestamp precedes each part in the
  // prompt.
  bool stamped = false;
  // true: num_frames and fps select the frames; false: loader_frames and loader_fps select them.
  bool samples = false;
  int loader_frames = 32;  // number of evenly spaced frames; 0: all frames, up to frames_max
  // Maximum frames per second; 0: no limit. If a request sends the frames as a list of images, this is the
  // list's frame rate; 0: 1 per second.
  double loader_fps = 0;
  int num_frames = 0;      // number of frames; 0: fps decides
  double fps = 2;          // frames per second, within the limits frames_min and frames_max
  int frames_min = 4;
  int frames_max = 768;
  FrameList list{};
  std::string token = "<|video_pad|>";
  std::string before = "<|vision_start|>";  // text between the timestamp and the part
  std::string after = "<|vision_end|>";
};

struct ProcessorConfig {
  std::variant<TileRule, SquareRule, AnySizeRule, RatioTileRule, LongestEdgeRule, PinnedTileRule,
               TokenBudgetRule, PaddedTileRule, SplitTileRule, PatchSearchRule, PatchBudgetRule,
               PaddedSizeRule, CanvasTileRule>
      rule = {};
  Filter filter = Filter::lanczos;
  Colour background = kWhiteBackground;  // colour behind transparent pixels
  // Channel values v in [0, 255] become (v * scale - mean) / std.
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};
  // Texts in the prompt: the chat template's placeholder of an image, the placeholder of each image token,
  // and the texts before and after the image tokens.
  std::string placeholder = "<image>";
  std::string token = "<image>";
  std::string before = {};
  std::string after = {};
  // Text between two rows of tokens of a grid, or after each tile; may be empty.
  std::string row_break = {};
  std::optional<VideoRule> video = {};

  // Returns true if the tiles of an image form one part, stacked vertically.
  bool stacked() const {
    return std::holds_alternative<PinnedTileRule>(rule) || std::holds_alternative<PaddedTileRule>(rule);
  }
};

}  // namespace octavo::media
