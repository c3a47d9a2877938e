// New values for some or all tensors of a model, received while it serves.
//
// The values are kept as safetensors files in memory (/dev/shm). finish() makes a folder with links to the
// model's files, to the new files, and an index that names the file of each tensor. An engine reads this
// folder like any other. Not thread-safe.
//
// States: idle, receiving (after start()) and finished (after finish()). keep() and drop() lead back to idle.
// Other calls are refused.
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
  // model: the folder of the weights in use. It must contain safetensors. Errors: unsupported, io.
  static Result<std::unique_ptr<WeightUpdate>> create(const std::string& model);
  WeightUpdate(const WeightUpdate&) = delete;
  WeightUpdate& operator=(const WeightUpdate&) = delete;
  // Deletes all files.
  ~WeightUpdate();

  Result<> start();
  // Adds bytes [first, first + bytes.size()) of a safetensors file of `all` bytes. Parts must arrive in
  // order. Returns true if the file is complete. Its tensors must exist in the model.
  Result<bool> add_part(std::span<const std::byte> bytes, std::uint64_t first, std::uint64_t all);
  // Adds a copy of a safetensors file.
  Result<> add_file(const std::string& path);
  // Returns the folder with the new weights. Errors: no tensor was received, or a file is incomplete.
  Result<std::string> finish();
  // Called when the folder is in use: deletes the files of replaced values.
  void keep();
  // Forgets what was received since start().
  void drop();

  bool receiving() const { return state_ == State::receiving; }
  std::size_t tensors() const { return received_.size(); }  // number of tensors received since start()

 private:
  enum class State { idle, receiving, finished };
  // Tensor name to name of its file in the folder.
  using FileOf = std::map<std::string, std::string, std::less<>>;

  WeightUpdate(std::filesystem::path model, std::filesystem::path root)
      : model_(std::move(model)), root_(std::move(root)) {}
  Result<> read_model();
  Result<> check_room(std::uint64_t more) const;
  Result<> take_file(const std::filesystem::path& file, const std::string& shown);
  std::filesystem::path next_file() const;
  std::filesystem::path folder(int number) const;
  Result<> write_folder(const FileOf& file_of) const;
  void remove_unused() const;

  std::filesystem::path model_;
  std::filesystem::path root_;    // holds files/ and a folder for each finished update
  std::string index_;             // name of the index file that the model's reader looks for
  std::uint64_t bytes_most_ = 0;  // of one update
  FileOf current_;                // of the weights in use
  FileOf received_;
  std::uint64_t received_bytes_ = 0;
  std::uint64_t incomplete_bytes_ = 0;  // bytes so far of a file that arrives in parts
  std::uint64_t incomplete_all_ = 0;    // size of this file; 0: none arrives
  int files_ = 0;                       // number of files so far
  int folders_ = 0;                     // number of folders so far
  int used_ = 0;                        // number of the folder in use; 0: the model's
  State state_ = State::idle;
};

}  // namespace octavo
