// Encodes the pixels of an image to rows that are the input of the language model.
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

// A vision transformer that runs on the backend's stream.
//
// Patches are sorted by token, so that the patches of a token are adjacent and need no copy. If the model
// has layers with windows, tokens are sorted by window. In these layers, each window is a sequence. In all
// other layers, the image is one sequence.
class ImageEncoder final : public RowEncoder {
 public:
  // `tower` is Model::tower. `tower` and `backend` must outlive this object. If all images have the same
  // size, all memory is allocated here. Otherwise the memory grows with the largest image. Returns an error
  // if there is not enough memory, or if the backend does not support the size of the heads.
  static Result<std::unique_ptr<ImageEncoder>> create(const Model& tower, Backend& backend);

  // A square image: bytes as in MediaPart, or f32 numbers from 0 to 255. If seen_rows > 0, patches attend
  // only to the upper left seen_rows x seen_columns patches; otherwise they attend to all patches.
  struct Square {
    std::string_view bytes = {};
    std::span<const float> numbers = {};
    int seen_rows = 0, seen_columns = 0;
  };

  Result<> begin(const MediaPart& image) override;
  // Requires that all images have the same size. Starts to encode a square. `encoded` receives its rows,
  // f32 [tokens, row_bytes() / 4].
  void begin_square(const Square& square, Buffer encoded);
  // Runs the next layers, on at most `rows` patches in total. If an image has more patches, a call runs a
  // part of one layer: about `rows` patches, in complete tokens or windows. The rows of the result have
  // ImageInput::row_dim() elements.
  std::optional<Buffer> advance(int rows) override;

  // Applies the projector to `rows`, [n, ImageInput::projector_columns()]. Returns [n, out_dim]. Requires
  // that all images have the same size.
  Result<std::vector<float>> projected(std::span<const float> rows);

  std::int64_t row_bytes() const override { return 4 * input_.row_dim(); }
  std::int64_t later_bytes(int tokens_max) const override;

 private:
  // Sizes that an image needs, or for which memory is allocated.
  struct Room {
    int rows = 0;  // patches and class tokens
    int windows = 0;
    int blocks = 0;

    bool holds(const Room& other) const {
      return rows >= other.rows && windows >= other.windows && blocks >= other.blocks;
    }
  };
  struct Grid {
    int rows = 0, columns = 0;  // size of the image in tokens
    // [patches]: row and column of each patch in the image
    std::vector<std::int32_t> patch_rows;
    std::vector<std::int32_t> patch_columns;
    std::vector<std::int32_t> token_slots;  // [tokens]
    int seen_rows = 0, seen_columns = 0;    // size of the visible part in patches
  };
  struct DeviceMemory {
    Buffer patches, positions, axes, starts, token_slots, projected;
    Buffer position_embeddings;  // f32 [rows, dim]: interpolated position embeddings
  };
  struct Sequences {
    std::vector<std::int32_t> starts, lengths, table;
    std::int64_t table_stride = 0;
    std::vector<std::int64_t> slots;  // [rows]
    int blocks = 0;

    void set(const std::vector<std::int32_t>& sizes);
    // Returns the part of the sequences to which these rows attend.
    Sequences part(StepRows rows) const;
  };

  ImageEncoder(const Model& tower, Backend& backend);
  Result<> read_positions();
  Result<> prepare(int rows, int columns);
  Result<> reserve(const Room& room);
  std::vector<std::int32_t> order_patches();
  int class_tokens() const { return input_.classes.count; }
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
  std::vector<std::byte> numbers_;     // act [3, 256]: normalised value of each byte, for each channel
  std::vector<float> position_table_;  // [learned_positions, dim]

  Grid grid_;
  Sequences whole_, windows_;

  Room room_;
  KvMemory cache_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;  // [cache group]
  std::vector<Buffer> slots_;
  std::vector<std::byte> host_patches_;  // act [rows, patch_values]
  DeviceMemory memory_;

  std::vector<GroupBatch> groups_;
  ForwardBatch batch_;
  Buffer encoded_;
  struct Done {
    std::size_t layers = 0;
    bool stored = false;  // whether all keys and values of the next layer are stored
    // rows of the next layer that are stored or, if `stored` is set, whose outputs are computed
    std::int64_t rows = 0;
    std::int64_t tokens = 0;  // tokens for which the projector has run
  };
  Done done_;
};

}  // namespace octavo
