// A folder with converted weights, one file for each model (weights/converted_weights.h). A load takes the
// matrices from the file of the model, or converts them and then writes the file.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"
#include "weights/converted_weights.h"

namespace octavo {

// The file of one model, while the model is loaded. Its name is a hash of everything that determines the
// matrices: the model's files (their sizes and times of change), the options, the processor and the program.
class WeightCache {
 public:
  // `path` is the model's path. Maps the file if it exists and is valid.
  WeightCache(const std::string& path, const LoadOptions& options, const Checkpoint& checkpoint,
              Device& device);

  // Returns a matrix of the file; null if the caller must convert it. Call it once for each matrix.
  WeightPtr take(const MatrixParameter& matrix);
  // Remembers the matrix. The weight must live until keep().
  void add(const MatrixParameter& matrix, const Weight& weight);
  // Gives the mapping to the model. If the file does not have exactly the model's matrices, starts to write
  // it, and removes other files if there are too many.
  void keep(Model& model);

 private:
  const std::string folder_;
  const Hash128 key_;
  const std::string path_;
  Device& device_;
  std::unique_ptr<ConvertedWeights> converted_;  // null if there is no file
  bool valid_ = false;                           // all matrices until now are from the file
  std::vector<NamedWeight> weights_;
};

}  // namespace octavo
