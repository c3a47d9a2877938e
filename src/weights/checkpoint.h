// The tensors of a model directory: model.safetensors, or the shards that model.safetensors.index.json lists.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/mapped_file.h"
#include "tensor/view.h"
#include "weights/safetensors.h"

namespace octavo {

class Checkpoint {
 public:
  // Maps the files; reads only their headers. Errors: not_found when neither file is there; corrupt when a
  // file is damaged, or the index and the shards contradict each other.
  static Result<Checkpoint> open(const std::string& directory);

  // Ascending by name, each name once.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Null when there is no such tensor.
  const StoredTensor* find(std::string_view name) const;
  // Of all tensors together.
  std::size_t bytes() const;

  // Tells the system that these bytes are not needed again.
  void release(const StoredTensor& tensor) const;

 private:
  std::vector<MappedFile> files_;
  std::vector<StoredTensor> tensors_;
};

// A tensor of up to four dimensions as a view. The format must be one that the engine knows.
View view_of(const StoredTensor& tensor);

}  // namespace octavo
