// Specs of the heads of embedding models and classifiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kinds.h"
#include "model/norm_spec.h"

namespace octavo {

// Functions that convert label scores to the numbers in replies.
enum class LabelActivation : std::uint8_t { none, sigmoid, softmax, relu };

// A matrix after pooling, and the operations on its product. Names of tensors have no prefix.
struct HeadLayer {
  std::string name;
  int outputs = 0;
  bool bias = true;
  std::optional<Activation> activation = {};
  NormSpec norm = {};  // norm after the activation
  std::string norm_name = {};
  // Folder beside config.json whose weights contain the matrix; `name` begins with the folder. "": no folder.
  std::string folder = {};
  // File that torch.save wrote beside config.json, with the matrix as "weight" and "bias". "": no file.
  std::string file = {};
  // Rows to use of a matrix with one row per token of the vocabulary (or with `table` rows); empty: all rows.
  // With `difference` there are two rows, and the only output is that of the first row minus that of the
  // second.
  std::vector<int> rows = {};
  int table = 0;
  bool difference = false;
};

// Output of an embedding model or a classifier: a vector or, if there are labels, their scores.
struct Head {
  Pool pool = Pool::mean;
  bool each_token = false;  // whether the output is one vector per token instead of one per text
  bool normalise = false;   // whether vectors are scaled to length 1
  std::vector<HeadLayer> layers = {};
  std::vector<std::string> labels = {};  // labels of the last layer's outputs; empty: the output is a vector
  LabelActivation label_activation = LabelActivation::none;
  // With each_token: ids of tokens without a vector, at the begin and the end of a text; -1: all tokens have
  // one.
  int left_out_first = -1;
  int left_out_last = -1;
};

}  // namespace octavo
