// The tensors of a model: from a folder's weight files (weight_files.h) or a GGUF file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/mapped_file.h"
#include "weights/packed_matrix.h"

namespace octavo {

// Checks a model's path before it is read. Returns not_found if it does not exist, or corrupt if files are
// git-lfs pointers (a clone without git-lfs contains these instead of the files).
Result<> check_model_path(const std::string& path);

class Checkpoint {
 public:
  // tensors: ascending by unique name; their bytes are in `memory`.
  Checkpoint(std::vector<StoredTensor> tensors, Buffer memory)
      : memory_(std::move(memory)), tensors_(std::move(tensors)) {}

  // Maps the files, reads only their headers, and joins packed matrices. path: a directory or a GGUF file.
  // Errors: not_found if there are no weights; corrupt for a damaged file, or if the index lists a tensor
  // that is missing; unsupported as in parse_torch_file(); those of join_packed().
  static Result<Checkpoint> open(const std::string& path, const PackedFormat& packed = {});

  // Also maps the weights in `directory`/`folder`, and adds "folder/" before their names. Errors: those of
  // open().
  Result<> add_folder(const std::string& directory, const std::string& folder);
  // Also maps a file of torch.save, and adds `before` before its tensors' names.
  Result<> add_torch_file(const std::string& path, const std::string& before);

  // Ascending by unique name.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Null if there is no such tensor.
  const StoredTensor* find(std::string_view name) const;
  // Sum over all tensors.
  std::size_t bytes() const;

  // Reports to the operating system that these bytes are not needed again.
  void release(const StoredTensor& tensor) const;
  // Called after the last read. Returns an error if bytes of a file were missing when they were read.
  Result<> intact() const;

 private:
  Checkpoint() = default;
  static Result<Checkpoint> open_directory(const std::string& directory, const PackedFormat& packed);
  void add(std::vector<StoredTensor> tensors, const std::string& before);

  std::vector<MappedFile> files_;
  Buffer memory_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace octavo
