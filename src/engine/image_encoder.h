// From pixels to rows of the language model's input: an encoder of images with what it needs to run.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/kv_memory.h"
#include "model/decoder.h"
#include "model/model.h"

namespace octavo {

// One image at a time, so that its rows do not depend on others. Uses the backend's stream.
class ImageEncoder {
 public:
  // tower: Model::tower; it and the backend live longer. Errors: not enough memory, heads that the backend cannot
  // compute.
  static Result<std::unique_ptr<ImageEncoder>> create(const Model& tower, Backend& backend);

  // pixels: ImagePart::pixels. Gives f32 [ImageInput::tokens, out_dim]. Error: not enough memory.
  Result<Buffer> encode(std::string_view pixels);

  std::int64_t row_bytes() const { return std::int64_t{4} * input_.out_dim; }
  View rows_of(const Buffer& encoded) const { return encoded.view(DType::f32, {input_.tokens(), input_.out_dim}); }

 private:
  ImageEncoder(const Model& tower, Backend& backend);
  Result<> allocate();
  void order_patches();
  void fill_patches(std::string_view pixels);

  const Model& tower_;
  const ImageInput input_;
  Backend& backend_;
  CacheLayout layout_;
  KvMemory cache_;  // of one image's patches
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;  // one a cache group
  std::vector<GroupBatch> groups_;

  std::vector<std::int32_t> order_;       // [patches]: the patch of each place
  std::vector<std::int32_t> starts_, lengths_, table_;
  std::vector<std::byte> host_patches_;   // act [patches, patch_values]
  std::vector<std::byte> numbers_;        // act [3, 256]: what a channel's value counts as
  Buffer patches_, positions_, slots_;
};

}  // namespace octavo
