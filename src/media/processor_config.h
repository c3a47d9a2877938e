// How a model wants its images: what model/image_processor.h reads of a checkpoint, as plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "media/resize.h"

namespace octavo::media {

// Square tiles with the whole image behind them: tiles.h.
struct TileRule {
  int longest_edge = 0;  // an image is first made so long, in pixels
  int tile_size = 0;     // of the square tiles that it is cut into
  bool split = true;     // false: the whole image becomes one tile
};

// Square tiles in a grid of nearly the image's shape, with the whole image behind them: ratio_tiles.h.
struct RatioTileRule {
  int tile_size = 0;  // of a tile's sides, in pixels
  int tiles_min = 1;  // of the grid
  int tiles_max = 12;
};

// One square part: square.h.
struct SquareRule {
  int size = 0;  // of its sides, in pixels
  bool crop =
      false;  // the shorter side becomes so long, and the middle is cut out; else the image is stretched
};

// One part of nearly the image's own size: any_size.h.
struct AnySizeRule {
  int unit = 0;  // both sides become a multiple of this, in pixels
  std::int64_t pixels_min = 0;
  std::int64_t pixels_max = 0;
  // Of videos whose limits are for all frames together: how many there are, and how many they count as when a size is
  // compared with the limits.
  int weight = 1;
  int rounded_weight = 1;
};

// One part of the image's own shape: longest_edge.h.
struct LongestEdgeRule {
  int longest = 0;  // of a side, in pixels, before both become multiples of
  int unit = 0;     // this
};

// One part of the image's own shape, with as many tokens as there may be: token_budget.h.
struct TokenBudgetRule {
  int unit = 0;  // both sides become a multiple of this, in pixels: a token's
  int tokens_max = 0;
};

// Square tiles of the image in one of some grids, behind the whole image: pinned_tiles.h.
struct PinnedTileRule {
  int tile_size = 0;  // of a tile's sides, in pixels
  struct Grid {
    int rows = 0, columns = 0;
  };
  std::vector<Grid> grids = {};
  int tiles_most = 0;  // the tokens of more are made as many as of these; 0: they stay
};

// Square tiles of the image in the grid that holds it, on white: padded_tiles.h.
struct PaddedTileRule {
  int tile_size = 0;  // of a tile's sides, in pixels
  int tiles_max = 0;
  int patch_size = 0;     // those that show nothing of the image are not seen
  bool as_torch = false;  // resampled as torch does it, else as Pillow
};

// How a model wants videos: video.h.
struct VideoRule {
  AnySizeRule size;        // of a frame
  int frames = 2;          // that stand for the tokens of one: a part
  bool stamped = false;    // as Qwen3-VL: limits of size are for all frames together, each part has its time in front of it
  bool samples = false;    // false: frames are chosen by the two below, true: by the next
  int loader_frames = 32;  // spread evenly; 0: all, up to frames_max
  double loader_fps = 0;   // at most so many a second; 0: no limit. Of a list of pictures: how many are a second, 0: 1
  int num_frames = 0;      // 0: by the next
  double fps = 2;          // a second, within
  int frames_min = 4;
  int frames_max = 768;
  std::string token = "<|video_pad|>";
  std::string before = "<|vision_start|>";  // a part that has its time
  std::string after = "<|vision_end|>";
};

struct ProcessorConfig {
  std::variant<TileRule, SquareRule, AnySizeRule, RatioTileRule, LongestEdgeRule, PinnedTileRule,
               TokenBudgetRule, PaddedTileRule>
      rule = {};
  Filter filter = Filter::lanczos;
  // A channel's value v, 0 to 255, counts as (v * scale - mean) / std.
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};
  // What stands in prompts: the template's for an image, ours for each of its tokens, and around these.
  std::string placeholder = "<image>";
  std::string token = "<image>";
  std::string before = {};
  std::string after = {};
  // Of grids: what stands between the rows of tokens; empty: nothing.
  std::string row_break = {};
  std::optional<VideoRule> video = {};  // nothing: the model sees none

  // The tiles of an image are one part, one below the other.
  bool stacked() const {
    return std::holds_alternative<PinnedTileRule>(rule) || std::holds_alternative<PaddedTileRule>(rule);
  }
};

}  // namespace octavo::media
