// Heads of models that read texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kinds.h"
#include "model/norm_spec.h"

namespace octavo {

// Conversion of labels' scores to the numbers that clients see.
enum class LabelActivation : std::uint8_t { none, sigmoid, softmax, relu };

// A matrix after the pooling, and the operations on its product. Names come without a prefix.
struct HeadLayer {
  std::string name;
  int outputs = 0;
  bool bias = true;
  std::optional<Activation> activation = {};
  NormSpec norm = {};  // after the activation
  std::string norm_name = {};
  // Not empty: a folder beside config.json whose weights are the matrix; `name` begins with it.
  std::string folder = {};
  // Not empty: a file of torch.save beside config.json that has the matrix, as "weight" and "bias".
  std::string file = {};
  // Not empty: of a matrix with a row for each token of the vocabulary, or with `table` of them, these; with
  // `difference` there are two, and the only output is the first one's less the second's.
  std::vector<int> rows = {};
  int table = 0;
  bool difference = false;
};

// Output of a model that reads texts instead of continuing them: a vector or, with labels, their scores.
struct Head {
  Pool pool = Pool::mean;
  bool each_token = false;  // one vector per token instead of one per text
  bool normalise = false;   // a vector's length becomes 1
  std::vector<HeadLayer> layers = {};
  std::vector<std::string> labels = {};  // labels of the last layer's outputs; empty: a vector
  LabelActivation label_activation = LabelActivation::none;
  // With each_token: tokens that get no vector at the beginning or end of a text; -1: none.
  int left_out_first = -1;
  int left_out_last = -1;
};

}  // namespace octavo
