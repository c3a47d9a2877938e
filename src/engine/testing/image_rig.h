// For tests: engines of vision models, with conversations and the outputs of transformers for these
// conversations. tools/goldens/make_vision_goldens.py creates the data in tests/data/vision.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <future>

#include "base/testing/eventually.h"
#include "base/testing/length.h"
#include "base/testing/scratch_directory.h"
#include "engine/load/load.h"
#include "engine/media/marked_image_encoder.h"
#include "engine/testing/answers.h"
#include "engine/testing/logprobs.h"
#include "kernels/backends.h"
#include "media/padded_tiles.h"
#include "media/pinned_tiles.h"
#include "media/testing/golden.h"
#include "tensor/mapped_file.h"
#include "weights/safetensors.h"

namespace octavo::image_rig {

using media::VisionGolden;
using testing::HasSubstr;

inline std::string pixels_of(const media::Image& tile) { return {tile.pixels.begin(), tile.pixels.end()}; }

struct Conversation {
  explicit Conversation(const std::string& name) : golden(name) {
    prompt = golden.values<TokenId>("ids");
    logits = golden.values<float>("logits");
    bf16_kl = golden.values<float>("bf16_kl");
    vocab = logits.size() / bf16_kl.size();
    answer = golden.values<TokenId>("answer");
    row_breaks = name == "mistral3" || name.starts_with("pixtral");
    constexpr std::string_view kAnySize[] = {
        "qwen",    "gemma4", "glm",  "paddleocr",      "exaone", "hyperclovax", "dots",          "lighton",
        "opencua", "cosmos", "lfm2", "phi4_reasoning", "kimi",   "alpamayo",    "nemotron_omni", "minimax",
        "bailing", "ovis",   "keye"};
    any_size =
        row_breaks || std::ranges::any_of(kAnySize, [&](auto begin) { return name.starts_with(begin); });
    padded = name.starts_with("phi4_m") || name == "phi3_vision";
    tiled = name.starts_with("llava_next") || name.starts_with("llava_onevision") || padded;
    unit = name == "pixtral" || name == "phi4_reasoning_vision" ? 6 : 12;
    int position = 0;
    for (const char* picture : {"rgb.png", "photo.jpg"}) {
      for (MediaPart& part : parts(picture)) {
        while (prompt[static_cast<std::size_t>(position)] != kImageToken) ++position;
        part.first = position;
        images.push_back(std::move(part));
        position += images.back().span();
      }
    }
  }

  // Returns the media parts of an image, without positions.
  std::vector<MediaPart> parts(const std::string& picture) const {
    const int tokens = static_cast<int>(golden.tensor(fmt::format("rows.{}", picture)).shape[1]);
    std::vector<MediaPart> parts;
    std::string stacked;
    for (const media::Image& tile : golden.tiles(fmt::format("tiles.{}", picture))) {
      stacked += pixels_of(tile);
      if (tiled) continue;
      parts.push_back({.tokens = tokens,
                       .bytes = pixels_of(tile),
                       .columns = any_size ? tile.width / unit : 0,
                       .row_breaks = row_breaks});
    }
    if (tiled) parts.push_back({.tokens = tokens, .bytes = std::move(stacked), .tiles = tiles_of(picture)});
    for (MediaPart& part : parts)
      part.digest = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(part.bytes)), 0);
    return parts;
  }

  MediaPart::Tiles tiles_of(const std::string& picture) const {
    if (padded) return padded_tiles_of(picture);
    const bool next = golden.directory.find("llava_onevision") == std::string::npos;
    media::PinnedTileRule rule{.tile_size = next ? 32 : 30};
    for (int rows = 1; rows <= 3; ++rows)
      for (int columns = 1; columns <= 3; ++columns)
        if (!next || (rows * columns > 1 && rows + columns <= 4)) rule.grids.push_back({rows, columns});
    const StoredTensor& decoded = golden.tensor(fmt::format("decoded.{}", picture));
    const int width = static_cast<int>(decoded.shape[1]), height = static_cast<int>(decoded.shape[0]);
    const media::PartGrid grid = media::pinned_tile_grid(width, height, rule).value();
    const media::TokenGrid kept = media::token_grid(width, height, grid, 4, next ? 0 : 2);
    return {.tile_rows = grid.rows,
            .tile_columns = grid.columns,
            .top = kept.top,
            .left = kept.left,
            .rows = kept.rows,
            .columns = kept.columns,
            .out_rows = kept.out_rows,
            .out_columns = kept.out_columns};
  }

  MediaPart::Tiles padded_tiles_of(const std::string& picture) const {
    const bool centred = golden.directory.ends_with("phi3_vision");
    const media::PaddedTileRule rule{.tile_size = 48, .tiles_max = 3, .patch_size = 6, .centred = centred};
    const StoredTensor& decoded = golden.tensor(fmt::format("decoded.{}", picture));
    const media::PartGrid grid =
        media::padded_tile_grid(static_cast<int>(decoded.shape[1]), static_cast<int>(decoded.shape[0]), rule)
            .value();
    const media::PatchGrid seen = media::seen_patches(grid, rule);
    const int rows = (seen.rows + 1) / 2, columns = (seen.columns + 1) / 2;
    return {.tile_rows = grid.rows,
            .tile_columns = grid.columns,
            .rows = rows,
            .columns = columns,
            .out_rows = rows,
            .out_columns = columns,
            .patch_rows = seen.rows,
            .patch_columns = seen.columns};
  }

  static constexpr TokenId kImageToken = 259;
  int unit;  // sizes are multiples of this number of pixels, in models that support any image size
  // Returns the number of tokens in the smallest steps. For models whose images must be computed in one
  // step, it is more than the number of tokens of an image.
  int small_step() const {
    if (golden.directory.find("paligemma") != std::string::npos) return 530;  // the context and 8 tokens
    return golden.directory.ends_with("gemma3") ? 25 : golden.directory.ends_with("gemma4-whole") ? 79 : 13;
  }
  VisionGolden golden;
  std::vector<TokenId> prompt, answer;
  bool any_size, row_breaks, tiled, padded;
  std::vector<MediaPart> images;
  std::vector<float> logits, bf16_kl;
  std::size_t vocab;

  Request request() const {
    Request request;
    request.prompt = prompt;
    request.media = images;
    request.sampling.max_tokens = static_cast<int>(answer.size());
    request.sampling.ignore_eos = true;
    request.sampling.temperature = 0;
    return request;
  }
};

struct ImageTestOptions {
  std::string dtype = "float32";
  int step_tokens = 2048;
  std::optional<CpuIsa> isa = {};
  std::string device = "cpu";
  bool prefix_caching = true;
  int blocks = 256;
  KvTransferOptions kv_transfer = {};
  std::string mmproj = {};
};

inline Result<std::unique_ptr<Engine>> image_engine_of(const std::string& directory,
                                                       const ImageTestOptions& test = {}) {
  EngineOptions options;
  options.model.dir = directory;
  options.model.mmproj = test.mmproj;
  options.device.type = test.device;
  options.model.dtype = test.dtype;
  options.device.threads = 2;
  options.schedule.max_num_batched_tokens = test.step_tokens;
  options.schedule.max_num_seqs = std::min(8, test.step_tokens);
  options.logprobs.max = -1;
  options.cache.enable_prefix_caching = test.prefix_caching;
  options.cache.num_blocks = test.blocks;
  options.kv_transfer = test.kv_transfer;
  const auto dress = [&](Backend) { return make_cpu_backend({.threads = 2, .isa = test.isa}).value(); };
  return test.isa ? load_engine(options, {.dress = dress}) : load_engine(options);
}

inline std::vector<float> logprobs(Engine& engine, const Conversation& conversation) {
  return last_logprobs(engine, conversation.request(), conversation.bf16_kl.size() - 1, conversation.vocab);
}

inline std::string image_test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace octavo::image_rig
