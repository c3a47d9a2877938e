// Receives new values for some or all tensors of a model while the server runs, for reinforcement learning.
// The values are kept as safetensors files in memory (/dev/shm). finish() makes a folder with links to the
// model's files and to the new files, and with an index that names the file of each tensor. An engine loads
// this folder like any model. Not thread-safe.
// The states are idle, receiving (after start()) and finished (after finish()). keep() and drop() return to
// idle. A call in a wrong state is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

class WeightUpdate {
 public:
  // `model` is the folder with the weights in use. Returns unsupported if its weights are not safetensors, or
  // io.
  static Result<std::unique_ptr<WeightUpdate>> create(const std::string& model);
  WeightUpdate(const WeightUpdate&) = delete;
  WeightUpdate& operator=(const WeightUpdate&) = delete;
  // Deletes all files of the update.
  ~WeightUpdate();

  Result<> start();
  // Adds the bytes [first, first + bytes.size()) of a safetensors file that has `all` bytes. Parts must
  // arrive in order. Returns true when the file is complete. Every tensor in the file must exist in the
  // model.
  Result<bool> add_part(std::span<const std::byte> bytes, std::uint64_t first, std::uint64_t all);
  Result<> add_file(const std::string& path);
  // Returns the folder with the new weights. Returns an error if no tensor was received or a file is
  // incomplete.
  Result<std::string> finish();
  // Call this when the engine uses the new folder. Deletes the previous folder, and the received files whose
  // tensors have all been replaced.
  void keep();
  // Deletes the files that were received since start().
  void drop();

  // Returns the folder with the weights in use: the last one kept, or the model's.
  std::string in_use() const { return (used_ > 0 ? folder(used_) : model_).string(); }
  bool receiving() const { return state_ == State::receiving; }
  std::size_t tensors() const { return received_.size(); }  // number of tensors received since start()

 private:
  enum class State { idle, receiving, finished };
  // Maps the name of a tensor to the name of its file in the folder.
  using FileOf = std::map<std::string, std::string, std::less<>>;

  WeightUpdate(std::filesystem::path model, std::filesystem::path root)
      : model_(std::move(model)), root_(std::move(root)) {}
  Result<> prepare_root();
  Result<> read_model();
  Result<> check_room(std::uint64_t more) const;
  Result<> take_file(const std::filesystem::path& file, const std::string& shown);
  std::filesystem::path next_file() const;
  std::filesystem::path folder(int number) const;
  Result<> write_folder(const FileOf& file_of) const;
  void remove_unused() const;

  std::filesystem::path model_;
  std::filesystem::path root_;  // contains files/ and a folder for each finished update
  int lock_ = -1;  // descriptor of the locked file root_/lock; other servers delete folders without a lock
  std::string index_;             // name of the index file that Checkpoint looks for
  std::uint64_t bytes_most_ = 0;  // limit for the bytes of one update
  FileOf current_;                // files of the weights in use
  FileOf received_;
  std::uint64_t received_bytes_ = 0;
  std::uint64_t incomplete_bytes_ = 0;  // bytes received of a file that arrives in parts
  std::uint64_t incomplete_all_ = 0;    // size of the file that arrives in parts; 0: none
  int files_ = 0;                       // number of files created so far, for file names
  int folders_ = 0;                     // number of folders created so far, for folder names
  int used_ = 0;                        // number of the folder in use; 0: the model's folder
  State state_ = State::idle;
};

}  // namespace octavo
