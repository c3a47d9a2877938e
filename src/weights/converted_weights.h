// A file with the matrices of a model in the layout of this processor. A process maps the file instead of
// converting a checkpoint. The pages of the file are the weights, so the process needs no new memory for
// them.
//
// The file begins with a Head. Its numbers are the key, the number of matrices and, for each matrix: its
// name, the length of its layout, the layout (weight_memory.h), the number of its pieces, and the offset and
// the number of bytes of each piece. Pieces are aligned to pages. The first one is aligned to a huge page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "kernels/weight_memory.h"

namespace octavo {

// Reads a file. Its matrices must be destroyed before it.
class ConvertedWeights {
 public:
  // Maps the file and reads its pages into memory. Returns not_found if the file does not exist, corrupt if
  // it is not a file for `key`, and io if it cannot be read.
  static Result<std::unique_ptr<ConvertedWeights>> open(const std::string& path, Hash128 key);
  ~ConvertedWeights();
  ConvertedWeights(const ConvertedWeights&) = delete;
  ConvertedWeights& operator=(const ConvertedWeights&) = delete;

  // Returns the next matrix of the file. Returns corrupt if it has another name or is not valid. Call it once
  // for each matrix, in the order in which they were written.
  Result<WeightPtr> next(Device& device, std::uint64_t name);
  bool at_end() const { return matrices_left_ == 0; }
  std::size_t bytes() const { return file_.size(); }

 private:
  explicit ConvertedWeights(std::span<std::byte> file) : file_(file) {}
  Result<> read_head(const std::string& path, Hash128 key);
  std::int64_t take();

  std::span<std::byte> file_;
  std::span<const std::int64_t> numbers_;  // those that are not read yet
  std::int64_t matrices_left_ = 0;
};

// Extension of files that a writer has begun.
constexpr std::string_view kUnfinishedWeights = ".octavo-part";

struct NamedWeight {
  std::uint64_t name;
  const Weight* weight;
};

// Writes a file on a thread of low priority. The data goes to another file, which is renamed when it is
// complete. If the process ends earlier, the next writer with the same path continues it.
class ConvertedWeightsWriter {
 public:
  // The weights must exist until the writer is destroyed.
  ConvertedWeightsWriter(std::string path, Hash128 key, std::span<const NamedWeight> weights);

  std::size_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  void start();

 private:
  struct Piece {
    std::size_t offset;
    std::span<const std::byte> bytes;
  };
  Result<bool> write(const std::stop_token& stop) const;
  Result<bool> write_data(int file, std::size_t from, const std::stop_token& stop) const;
  Result<bool> finish(int file, const std::string& unfinished) const;

  const std::string path_;
  std::vector<std::byte> head_;
  std::vector<Piece> pieces_;
  std::size_t bytes_ = 0;  // size of the file
  std::jthread thread_;    // stopped and joined first
};

}  // namespace octavo
