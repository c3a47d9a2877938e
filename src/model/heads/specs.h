// Specs for the heads of embedding models and classifiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kinds.h"
#include "model/norm_spec.h"

namespace octavo {

// Converts label scores to the numbers in responses.
enum class LabelActivation : std::uint8_t { none, sigmoid, softmax, relu };

// A matrix after pooling, and the operations after it. Tensor names have no prefix.
struct HeadLayer {
  std::string name;
  int outputs = 0;
  bool bias = true;
  std::string bias_name = {};  // full name; "": name + ".bias"
  std::optional<Activation> activation = {};
  NormSpec norm = {};  // norm after the activation
  std::string norm_name = {};
  // Folder beside config.json whose weights contain the matrix. `name` begins with the folder. Empty: none.
  std::string folder = {};
  // File that torch.save wrote beside config.json, with the matrix as "weight" and "bias". Empty: none.
  std::string file = {};
  // Rows to use of a matrix with one row per token of the vocabulary (or with `table` rows). Empty: all rows.
  // With `difference`, there are two rows, and the only output is the first row's output minus the second
  // row's.
  std::vector<int> rows = {};
  int table = 0;
  bool difference = false;
};

// Output of an embedding model or a classifier: a vector or, if there are labels, their scores.
struct Head {
  Pool pool = Pool::mean;
  bool each_token = false;  // one output per token instead of one per text
  bool normalise = false;   // scale vectors to length 1
  // Used instead of `pool`: the layers apply to each token, and the output of a text is log(1 + max(0, x)),
  // where x has the largest outputs of its tokens (Formal et al., "SPLADE v2", 2021).
  bool of_tokens = false;
  std::vector<HeadLayer> layers = {};
  std::vector<std::string> labels = {};  // one per output of the last layer; empty: the output is a vector
  LabelActivation label_activation = LabelActivation::none;
  // With each_token: ids of the tokens at the beginning and the end of a text that get no vector. -1: all
  // tokens get one.
  int left_out_first = -1;
  int left_out_last = -1;
};

}  // namespace octavo
