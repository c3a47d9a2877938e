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

// Square tiles, then the whole image (tiles.h).
struct TileRule {
  int longest_edge = 0;  // length of the longer side after the first scaling, in pixels
  int tile_size = 0;     // side of a square tile, in pixels
  bool split = true;     // false: the whole image becomes one tile
};

// Square tiles in a grid with about the image's aspect ratio, then the whole image (ratio_tiles.h).
struct RatioTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  int tiles_min = 1;  // limits on the number of tiles
  int tiles_max = 12;
};

// One square part (square.h).
struct SquareRule {
  int size = 0;       // side, in pixels
  bool crop = false;  // true: scale the shorter side to `size` and crop the centre; false: stretch the image
};

// One part of about the image's own size (any_size.h).
struct AnySizeRule {
  int unit = 0;  // in pixels; both sides become multiples of it
  std::int64_t pixels_min = 0;
  std::int64_t pixels_max = 0;
  // For videos whose size limits apply to all frames together: the number of frames, and the number of
  // frames that the limits are compared with.
  int weight = 1;
  int rounded_weight = 1;
};

// One part with the image's aspect ratio (longest_edge.h).
struct LongestEdgeRule {
  int longest = 0;  // limit of the longer side in pixels, before both sides become multiples of `unit`
  int unit = 0;     // in pixels
};

// One part with the image's aspect ratio and the largest number of tokens within the limit (token_budget.h).
struct TokenBudgetRule {
  int unit = 0;  // side of a token in pixels; both sides of the image become multiples of it
  int tokens_max = 0;
};

// The whole image, then its square tiles in one of several grids (pinned_tiles.h).
struct PinnedTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  struct Grid {
    int rows = 0, columns = 0;
  };
  std::vector<Grid> grids = {};
  int tiles_most = 0;  // maximum tiles of a grid, above which its tokens are interpolated to this number of
                       // tiles; 0: no limit
};

// Square tiles in a grid that holds the image, on white (padded_tiles.h).
struct PaddedTileRule {
  int tile_size = 0;  // side of a tile, in pixels
  int tiles_max = 0;
  int patch_size = 0;     // side of a patch in pixels; patches outside the image are masked
  bool as_torch = false;  // true: resample as torch does; false: as Pillow does
};

// Preprocessing of videos (video.h).
struct VideoRule {
  AnySizeRule size;
  int frames = 2;  // frames of a part; a part has the same number of tokens as an image
  // Qwen3-VL: the size limits apply to all frames together, and a timestamp precedes each part.
  bool stamped = false;
  bool samples = false;    // true: num_frames and fps select the frames; false: loader_frames and loader_fps
  int loader_frames = 32;  // number of frames, evenly spaced; 0: all, up to frames_max
  double loader_fps = 0;   // maximum frames per second; 0: no limit. For a list of images, its frame rate;
                           // 0: 1 per second
  int num_frames = 0;      // number of frames; 0: from fps
  double fps = 2;          // frames per second, within the limits frames_min and frames_max
  int frames_min = 4;
  int frames_max = 768;
  std::string token = "<|video_pad|>";
  std::string before = "<|vision_start|>";  // text between the timestamp and the part
  std::string after = "<|vision_end|>";
};

struct ProcessorConfig {
  std::variant<TileRule, SquareRule, AnySizeRule, RatioTileRule, LongestEdgeRule, PinnedTileRule,
               TokenBudgetRule, PaddedTileRule>
      rule = {};
  Filter filter = Filter::lanczos;
  // Scaling of channel values: v in [0, 255] becomes (v * scale - mean) / std.
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};
  // Texts in prompts: the template's placeholder of an image, the placeholder of each of its tokens, and
  // the texts around these.
  std::string placeholder = "<image>";
  std::string token = "<image>";
  std::string before = {};
  std::string after = {};
  // Text between two rows of a grid's tokens; may be empty.
  std::string row_break = {};
  std::optional<VideoRule> video = {};  // nullopt if the model does not support videos

  // Returns whether the tiles of an image form one part, stacked vertically.
  bool stacked() const {
    return std::holds_alternative<PinnedTileRule>(rule) || std::holds_alternative<PaddedTileRule>(rule);
  }
};

}  // namespace octavo::media
