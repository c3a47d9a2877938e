// The tensors of a model, read from a folder's weight files (weight_files.h) or from a GGUF file. The
// loader of the model looks tensors up by name.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/mapped_file.h"
#include "weights/packed_matrix.h"

namespace octavo {

struct Gguf;

// Checks a model's path before anything is read. Returns not_found if the path does not exist, and corrupt
// if files are git-lfs pointers (a clone without git-lfs has small text files instead of the weights).
Result<> check_model_path(const std::string& path);

class Checkpoint {
 public:
  // `tensors` must be sorted by name, without duplicates, and their bytes must be in `memory`.
  Checkpoint(std::vector<StoredTensor> tensors, Buffer memory)
      : memory_(std::move(memory)), tensors_(std::move(tensors)) {}

  // Maps the files, reads only their headers, and joins packed matrices. `path` is a directory or a GGUF
  // file. Returns not_found if there are no weights, and corrupt for a damaged file or if the index lists a
  // missing tensor. Also returns the errors of parse_torch_file() and join_packed().
  static Result<Checkpoint> open(const std::string& path, const PackedFormat& packed = {});

  // Also maps the weights in `directory`/`folder`, and adds "folder/" before their names. Returns the
  // errors of open().
  Result<> add_folder(const std::string& directory, const std::string& folder);
  // Also maps a file that torch.save wrote, and adds the prefix `before` to the names of its tensors.
  Result<> add_torch_file(const std::string& path, const std::string& before);
  // Also maps a GGUF file with an encoder, and restores the shapes of its tensors (encoder_tensors.h).
  Result<> add_encoder(const std::string& path);

  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Returns null if there is no such tensor.
  const StoredTensor* find(std::string_view name) const;
  std::size_t bytes() const;

  // Returns the file that contains these bytes; null if they are not in a file.
  std::shared_ptr<const MappedFile> file_with(const std::byte* bytes) const;

  // Tells the operating system that the tensor's bytes are needed soon.
  void prefetch(const StoredTensor& tensor) const;
  // Tells the operating system that the tensor's bytes are not needed again.
  void release(const StoredTensor& tensor) const;
  // Returns an error if a file became shorter or unreadable, so that some of its bytes were read as zeros.
  // Call it after the last read.
  Result<> intact() const;

  // Returns a text that differs after any change of the files.
  std::string identity() const;

 private:
  Checkpoint() = default;
  static Result<Checkpoint> open_directory(const std::string& directory, const PackedFormat& packed);
  void add(std::vector<StoredTensor> tensors, const std::string& before);
  void add(Gguf gguf);
  // Calls `advice` on the file that has the bytes of the tensor. For a packed matrix, does this for codes,
  // scales, zeros and group_index.
  void advise(const StoredTensor& tensor, void (MappedFile::*advice)(std::span<const std::byte>) const) const;

  std::vector<std::shared_ptr<const MappedFile>> files_;
  Buffer memory_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace octavo
