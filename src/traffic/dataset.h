// What is asked: the datasets of vLLM's `bench serve` that need no download.
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
  int output_tokens = 0;  // asked for at most
};

struct DatasetOptions {
  // random: ids of chance. prefix_repetition: ids of chance behind a few common prefixes. sharegpt: the first
  // two turns of each conversation of a ShareGPT file. custom: lines of JSON with a "prompt" each and perhaps
  // "output_tokens".
  std::string name = "random";
  std::string path = {};  // of sharegpt and custom
  int num_prompts = 1000;
  std::uint64_t seed = 0;

  int random_input_len = 1024;
  int random_output_len = 128;
  double random_range_ratio = 0;  // lengths lie within so much of those, both ways; in [0, 1)
  int random_prefix_len = 0;      // common to all, before the input

  int prefixes = 10;
  int prefix_len = 256;
  int suffix_len = 256;
  int prefix_output_len = 128;

  int sharegpt_output_len = 0;  // 0: as long as the answer in the file
  int custom_output_len = 256;
};

// A file with fewer prompts than asked for gives them again from its beginning, in an order of chance.
// Errors: invalid_argument (fields "dataset-name", "dataset-path"), not_found, io, corrupt (names the entry).
Result<std::vector<Prompt>> load_dataset(const DatasetOptions& options, const Tokenizer& tokenizer);

}  // namespace octavo::traffic
