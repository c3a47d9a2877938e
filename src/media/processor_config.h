// A model's image preprocessing as plain data; model/image_processor.h reads it from a checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "media/resize.h"

namespace octavo::media {

// Square tiles, then the whole image: tiles.h.
struct TileRule {
  int longest_edge = 0;  // the longer side is first scaled to this, in pixels
  int tile_size = 0;     // side of a square tile, in pixels
  bool split = true;     // false: the whole image becomes one tile
};

// Square tiles in a grid of about the image's shape, then the whole image: ratio_tiles.h.
struct RatioTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  int tiles_min = 1;  // limits on the number of tiles
  int tiles_max = 12;
};

// One square part: square.h.
struct SquareRule {
  int size = 0;       // side, in pixels
  bool crop = false;  // true: scale the shorter side to `size` and crop the centre; false: stretch
};

// One part of about the image's own size: any_size.h.
struct AnySizeRule {
  int unit = 0;  // both sides become a multiple of this, in pixels
  std::int64_t pixels_min = 0;
  std::int64_t pixels_max = 0;
  // For videos with size limits over all frames together: number of frames, and the number that counts when a
  // size is compared with the limits.
  int weight = 1;
  int rounded_weight = 1;
};

// One part of the image's own shape: longest_edge.h.
struct LongestEdgeRule {
  int longest = 0;  // limit of the longer side, in pixels, before both sides become multiples of `unit`
  int unit = 0;     // in pixels
};

// One part of the image's own shape, with as many tokens as allowed: token_budget.h.
struct TokenBudgetRule {
  int unit = 0;  // both sides become a multiple of a token's size, in pixels
  int tokens_max = 0;
};

// The whole image, then square tiles of it in one of several grids: pinned_tiles.h.
struct PinnedTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  struct Grid {
    int rows = 0, columns = 0;
  };
  std::vector<Grid> grids = {};
  int tiles_most = 0;  // tokens of larger grids are interpolated to those of this number of tiles; 0: never
};

// Square tiles in the grid that holds the image, on white: padded_tiles.h.
struct PaddedTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  int tiles_max = 0;
  int patch_size = 0;     // patches that show nothing of the image are masked
  bool as_torch = false;  // resample as torch does; else as Pillow
};

// Preprocessing of videos: video.h.
struct VideoRule {
  AnySizeRule size;  // size of a frame
  int frames = 2;    // frames per part; a part has the tokens of one image
  // Qwen3-VL: size limits cover all frames together, and each part has a timestamp before it
  bool stamped = false;
  bool samples = false;    // false: loader_frames and loader_fps select frames; true: num_frames and fps
  int loader_frames = 32;  // spread evenly; 0: all, up to frames_max
  double loader_fps = 0;   // maximum frames per second; 0: no limit. For a list of images: its rate, 0: 1
  int num_frames = 0;      // 0: use fps
  double fps = 2;          // frames per second, within frames_min and frames_max
  int frames_min = 4;
  int frames_max = 768;
  std::string token = "<|video_pad|>";
  std::string before = "<|vision_start|>";  // text before a part with a timestamp
  std::string after = "<|vision_end|>";
};

struct ProcessorConfig {
  std::variant<TileRule, SquareRule, AnySizeRule, RatioTileRule, LongestEdgeRule, PinnedTileRule,
               TokenBudgetRule, PaddedTileRule>
      rule = {};
  Filter filter = Filter::lanczos;
  // A channel value v in 0 .. 255 becomes (v * scale - mean) / std.
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};
  // Texts in prompts: the template's placeholder for an image, ours for each of its tokens, and the texts
  // around them.
  std::string placeholder = "<image>";
  std::string token = "<image>";
  std::string before = {};
  std::string after = {};
  // For grids: text between rows of tokens; may be empty.
  std::string row_break = {};
  std::optional<VideoRule> video = {};  // nullopt: the model takes no videos

  // Whether an image's tiles are one part, stacked vertically.
  bool stacked() const {
    return std::holds_alternative<PinnedTileRule>(rule) || std::holds_alternative<PaddedTileRule>(rule);
  }
};

}  // namespace octavo::media
