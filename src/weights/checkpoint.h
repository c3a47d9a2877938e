// The tensors of a model: those of a folder's weight files (weight_files.h) or of a GGUF file.
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

// What can be said of a model's path before anything is read. Errors: not_found when nothing is there;
// corrupt when files are git-lfs pointers, which a clone without git-lfs leaves in place of the files
// themselves.
Result<> check_model_path(const std::string& path);

class Checkpoint {
 public:
  // Of tensors whose bytes lie in `memory`; ascending by name, each name once.
  Checkpoint(std::vector<StoredTensor> tensors, Buffer memory)
      : memory_(std::move(memory)), tensors_(std::move(tensors)) {}

  // Maps the files; reads only their headers, and joins packed matrices. `path` is a directory or a GGUF
  // file. Errors: not_found when there are no weights; corrupt when a file is damaged, or lacks a tensor that
  // the index has there; unsupported, see parse_torch_file; see join_packed.
  static Result<Checkpoint> open(const std::string& path, const PackedFormat& packed = {});

  // Maps the weights of `directory`/`folder` as well; its tensors have "folder/" in front of their names.
  // Errors: as open().
  Result<> add_folder(const std::string& directory, const std::string& folder);
  // Likewise a file of torch.save; its tensors have `before` in front of their names.
  Result<> add_torch_file(const std::string& path, const std::string& before);

  // Ascending by name, each name once.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Null when there is no such tensor.
  const StoredTensor* find(std::string_view name) const;
  // Of all tensors together.
  std::size_t bytes() const;

  // Tells the system that these bytes are not needed again.
  void release(const StoredTensor& tensor) const;
  // Error: a file lost bytes that were read. Ask when all has been read.
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
