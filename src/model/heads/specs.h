// Specs of the heads of embedding models and classifiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kinds.h"
#include "model/norm_spec.h"

namespace octavo {

// Function that converts the labels' scores to the numbers in replies.
enum class LabelActivation : std::uint8_t { none, sigmoid, softmax, relu };

// A matrix after pooling, and the operations on its product. Names have no prefix.
struct HeadLayer {
  std::string name;
  int outputs = 0;
  bool bias = true;
  std::optional<Activation> activation = {};
  NormSpec norm = {};  // norm after the activation
  std::string norm_name = {};
  // Folder beside config.json whose weights contain the matrix; `name` begins with it. "": none.
  std::string folder = {};
  // File of torch.save beside config.json with the matrix, as "weight" and "bias". "": none.
  std::string file = {};
  // Rows to use of a matrix with a row for each token of the vocabulary (or with `table` rows); empty: all
  // rows. With `difference` there are two, and the only output is the first one minus the second.
  std::vector<int> rows = {};
  int table = 0;
  bool difference = false;
};

// Output of an embedding model or a classifier: a vector or, if there are labels, their scores.
struct Head {
  Pool pool = Pool::mean;
  bool each_token = false;  // one vector per token instead of one per text
  bool normalise = false;   // vectors are scaled to length 1
  std::vector<HeadLayer> layers = {};
  std::vector<std::string> labels = {};  // labels of the last layer's outputs; empty: the output is a vector
  LabelActivation label_activation = LabelActivation::none;
  // With each_token: ids of tokens without a vector, at the beginning and the end of a text; -1: none.
  int left_out_first = -1;
  int left_out_last = -1;
};

}  // namespace octavo
