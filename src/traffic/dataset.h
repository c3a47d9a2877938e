// The datasets of `vllm bench` that need no download.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo::traffic {

struct Prompt {
  std::vector<std::int32_t> ids;  // empty: `text` is the prompt
  std::string text;
  int input_tokens = 0;
  int output_tokens = 0;  // maximum number of output tokens
};

struct DatasetOptions {
  // Name of the dataset:
  // * random: random token ids.
  // * prefix_repetition: random token ids after one of a few common prefixes.
  // * sharegpt: the first two turns of each conversation in a ShareGPT file.
  // * sonnet: lines of a text file. All prompts have the same first lines; the other lines are random.
  // * custom: JSON lines with "prompt" and optionally "output_tokens".
  std::string name = "random";
  std::string path = {};  // file, for sharegpt, sonnet and custom
  int num_prompts = 1000;
  std::uint64_t seed = 0;

  int random_input_len = 1024;
  int random_output_len = 128;
  // maximum relative deviation from the mean length, in [0, 1)
  double random_range_ratio = 0;
  // number of tokens with which all prompts begin, in addition to random_input_len
  int random_prefix_len = 0;

  int prefixes = 10;
  int prefix_len = 256;
  int suffix_len = 256;
  int prefix_output_len = 128;

  int sonnet_input_len = 550;  // number of tokens, including sonnet_prefix_len
  int sonnet_prefix_len = 200;
  int sonnet_output_len = 150;

  int sharegpt_output_len = 0;  // 0: length of the answer in the file
  int custom_output_len = 256;
};

// If the file has too few prompts, they are repeated in random order. Returns invalid_argument on
// "dataset-name" or "dataset-path", not_found, io, or corrupt with the invalid entry.
Result<std::vector<Prompt>> load_dataset(const DatasetOptions& options, const Tokenizer& tokenizer);

}  // namespace octavo::traffic
