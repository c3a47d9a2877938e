// From pixels to rows of the language model's input: an encoder of images with what it needs to run.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/cache/kv_memory.h"
#include "engine/media/row_encoder.h"
#include "model/decoder.h"
#include "model/model.h"

namespace octavo {

// Uses the backend's stream.
//
// Patches come token by token, so that those of one token are side by side and need not be moved; the tokens
// window by window, where layers look no further. To the layers that do, an image is one sequence, to the
// others each window.
class ImageEncoder final : public RowEncoder {
 public:
  // tower: Model::tower; it and the backend live longer. Where images have one size, all memory is taken
  // here; else it grows with the largest. Errors: not enough memory, heads that the backend cannot compute.
  static Result<std::unique_ptr<ImageEncoder>> create(const Model& tower, Backend& backend);

  // A square picture: bytes, as MediaPart has them, or f32 numbers, 0 to 255, in their place. Of its patches,
  // those from the upper left corner on that others see; 0: all.
  struct Square {
    std::string_view bytes = {};
    std::span<const float> numbers = {};
    int seen_rows = 0, seen_columns = 0;
  };

  Result<> begin(const MediaPart& image) override;
  // Of images of one size: another one, whose rows go to this memory, f32 [tokens, row_bytes() / 4].
  void begin_square(const Square& square, Buffer encoded);
  // Runs the next layers, as many as have so many rows of patches together; of an image with more, so many
  // rows of one layer, or one of its windows. Rows: ImageInput::row_dim().
  std::optional<Buffer> advance(int rows) override;

  // What the projector makes of rows [n, dim] of numbers: [n, out_dim]. Of images of one size.
  Result<std::vector<float>> projected(std::span<const float> rows);

  std::int64_t row_bytes() const override { return 4 * input_.row_dim(); }
  std::int64_t later_bytes(int tokens_max) const override;

 private:
  // What an image needs, or what there is room for.
  struct Room {
    int rows = 0;  // patches and a class token
    int windows = 0;
    int blocks = 0;  // of the cache, the most that a layer uses

    bool holds(const Room& other) const {
      return rows >= other.rows && windows >= other.windows && blocks >= other.blocks;
    }
  };
  // The sequences that a group of layers sees.
  struct Sequences {
    std::vector<std::int32_t> starts, lengths, table;
    std::int64_t table_stride = 0;
    std::vector<std::int64_t> slots;  // [rows]
    int blocks = 0;

    void set(const std::vector<std::int32_t>& sizes);
    // What attention of these rows alone needs.
    Sequences part(StepRows rows) const;
  };

  ImageEncoder(const Model& tower, Backend& backend);
  Result<> read_positions();
  Result<> prepare(int rows, int columns);
  Result<> reserve(const Room& room);
  std::vector<std::int32_t> order_patches();
  int class_tokens() const { return input_.class_token ? 1 : 0; }
  // What a channel's value, 0 to 255, counts as.
  float number_of(float value, std::size_t channel) const {
    return (value * input_.scale - input_.mean[channel]) / input_.std[channel];
  }
  const Sequences& sequences_of(const LayerGroup& group) const { return group.local ? windows_ : whole_; }
  void see(int rows, int columns);
  void upload_grid();
  void fill_patches(const Square& picture, int frames);
  void start(const Square& picture, int frames);
  View projected() const;
  void advance_layer(int rows);
  std::int64_t squares_from(std::int64_t row, int rows) const;
  std::int64_t windows_from(std::int64_t row, int rows) const;
  void plan(std::size_t group, const Sequences& sequences);
  void project(int rows);

  const Model& tower_;
  const ImageInput input_;
  Backend& backend_;
  CacheLayout layout_;
  std::vector<std::byte> numbers_;     // act [3, 256]: what a channel's value counts as
  std::vector<float> position_table_;  // [learned_positions, dim]

  // Of images as large as the last.
  int rows_ = 0, columns_ = 0;            // of tokens
  std::vector<std::int32_t> patch_rows_;  // [patches], each with its column: the patch in each place
  std::vector<std::int32_t> patch_columns_;
  std::vector<std::int32_t> token_places_;  // [tokens]
  int seen_rows_ = 0, seen_columns_ = 0;    // patches
  Sequences whole_, windows_;

  Room room_;
  KvMemory cache_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;  // one a cache group
  std::vector<Buffer> slots_;
  std::vector<std::byte> host_patches_;  // act [rows, patch_values]
  Buffer patches_, positions_, axes_, starts_, token_places_memory_, projected_;
  Buffer placed_;  // f32 [rows, dim], of stretched positions

  // Of the image that has begun.
  std::vector<GroupBatch> groups_;
  ForwardBatch batch_;
  Buffer encoded_;
  struct Done {
    std::size_t layers = 0;
    bool stored = false;      // of the next layer, all keys and values
    std::int64_t rows = 0;    // of its keys and values, or of itself
    std::int64_t tokens = 0;  // behind the projector
  };
  Done done_;
};

}  // namespace octavo
