#include "traffic/dataset.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

namespace octavo::traffic {
namespace {

namespace json = boost::json;

constexpr std::uintmax_t kFileBytesMax = std::uintmax_t{4} << 30;
// As in vLLM, conversations outside of these limits (in tokens) are skipped.
constexpr int kShareGptLeast = 4, kShareGptPromptMost = 1024, kShareGptMost = 2048;

class Chance {
 public:
  Chance(std::uint64_t seed, std::int32_t vocab) : random_(seed), id_(0, vocab - 1) {}

  std::vector<std::int32_t> ids(int count) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    for (std::int32_t& id : ids) id = id_(random_);
    return ids;
  }
  int near(int length, double ratio) {
    const auto spread = static_cast<int>(length * ratio);
    return std::max(1, std::uniform_int_distribution<int>(length - spread, length + spread)(random_));
  }

 private:
  std::mt19937_64 random_;
  std::uniform_int_distribution<std::int32_t> id_;
};

Prompt prompt_of(const std::vector<std::int32_t>& prefix, const std::vector<std::int32_t>& rest,
                 int output_tokens) {
  Prompt prompt{.ids = prefix, .text = {}, .output_tokens = output_tokens};
  prompt.ids.insert(prompt.ids.end(), rest.begin(), rest.end());
  prompt.input_tokens = static_cast<int>(prompt.ids.size());
  return prompt;
}

std::vector<Prompt> random_prompts(const DatasetOptions& o, std::int32_t vocab) {
  Chance chance(o.seed, vocab);
  const std::vector<std::int32_t> prefix = chance.ids(o.random_prefix_len);
  std::vector<Prompt> prompts;
  for (int i = 0; i < o.num_prompts; ++i) {
    const std::vector<std::int32_t> rest = chance.ids(chance.near(o.random_input_len, o.random_range_ratio));
    prompts.push_back(prompt_of(prefix, rest, chance.near(o.random_output_len, o.random_range_ratio)));
  }
  return prompts;
}

std::vector<Prompt> repeated_prefixes(const DatasetOptions& o, std::int32_t vocab) {
  Chance chance(o.seed, vocab);
  std::vector<std::vector<std::int32_t>> prefixes;
  for (int i = 0; i < o.prefixes; ++i) prefixes.push_back(chance.ids(o.prefix_len));
  std::vector<Prompt> prompts;
  for (int i = 0; i < o.num_prompts; ++i)
    prompts.push_back(prompt_of(prefixes[static_cast<std::size_t>(i) % prefixes.size()],
                                chance.ids(o.suffix_len), o.prefix_output_len));
  std::shuffle(prompts.begin(), prompts.end(), std::mt19937_64(o.seed));
  return prompts;
}

Result<std::string> read_file(const std::string& path) {
  if (path.empty()) return invalid("dataset-path", "this dataset needs a file");
  std::error_code wrong;
  const std::uintmax_t bytes = std::filesystem::file_size(path, wrong);
  if (wrong) return field_failure("dataset-path", ErrorCode::not_found, "{}: {}", path, wrong.message());
  if (bytes > kFileBytesMax)
    return invalid("dataset-path", "{} has {} bytes, but at most {} are allowed", path, bytes, kFileBytesMax);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(text << file.rdbuf()) && bytes > 0)
    return field_failure("dataset-path", ErrorCode::io, "cannot read {}", path);
  return std::move(text).str();
}

std::unexpected<Error> corrupt(const DatasetOptions& o, std::size_t entry, std::string_view what) {
  return field_failure("dataset-path", ErrorCode::corrupt, "{}, entry {}: {}", o.path, entry + 1, what);
}

Result<int> tokens_of(std::string_view text, const Tokenizer& tokenizer) {
  TRY(const auto ids, tokenizer.encode(text, true));
  return static_cast<int>(ids.size());
}

// Returns null if the text is missing.
const json::string* turn(const json::array& turns, std::size_t i) {
  const json::object* object = turns[i].if_object();
  const json::value* value = object == nullptr ? nullptr : object->if_contains("value");
  return value == nullptr ? nullptr : value->if_string();
}

// Tokenizes only the conversations that are used.
Result<std::vector<Prompt>> sharegpt(const DatasetOptions& o, const Tokenizer& tokenizer) {
  TRY(const std::string text, read_file(o.path));
  boost::system::error_code wrong;
  const json::value root = json::parse(text, wrong);
  if (wrong || !root.is_array())
    return field_failure("dataset-path", ErrorCode::corrupt, "{} must contain a JSON list of conversations",
                         o.path);
  const json::array& entries = root.get_array();
  std::vector<std::size_t> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937_64(o.seed));
  std::vector<Prompt> prompts;
  for (const std::size_t i : order) {
    if (prompts.size() == static_cast<std::size_t>(o.num_prompts)) break;
    const json::object* entry = entries[i].if_object();
    const json::value* all = entry == nullptr ? nullptr : entry->if_contains("conversations");
    if (all == nullptr || !all->is_array()) return corrupt(o, i, "\"conversations\" must be a list");
    const json::array& turns = all->get_array();
    if (turns.size() < 2) continue;
    const json::string *question = turn(turns, 0), *answered = turn(turns, 1);
    if (question == nullptr || answered == nullptr) return corrupt(o, i, "each turn must have a \"value\"");
    TRY(const int input, tokens_of(*question, tokenizer));
    int output = o.sharegpt_output_len;
    if (output == 0) {
      TRY(output, tokens_of(*answered, tokenizer));
    }
    if (input < kShareGptLeast || output < kShareGptLeast || input > kShareGptPromptMost ||
        input + output > kShareGptMost)
      continue;
    prompts.push_back(
        {.ids = {}, .text = std::string(*question), .input_tokens = input, .output_tokens = output});
  }
  return prompts;
}

Result<std::vector<Prompt>> custom(const DatasetOptions& o, const Tokenizer& tokenizer) {
  TRY(const std::string text, read_file(o.path));
  std::istringstream lines(text);
  std::vector<Prompt> prompts;
  std::string line;
  for (std::size_t i = 0; std::getline(lines, line); ++i) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    boost::system::error_code wrong;
    const json::value entry = json::parse(line, wrong);
    const json::object* object = wrong ? nullptr : entry.if_object();
    const json::value* prompt = object == nullptr ? nullptr : object->if_contains("prompt");
    if (prompt == nullptr || !prompt->is_string())
      return corrupt(o, i, "must be a JSON object with a \"prompt\"");
    int output = o.custom_output_len;
    if (const json::value* question = object->if_contains("output_tokens")) {
      if (!question->is_int64() || question->get_int64() < 1 || question->get_int64() > 1 << 24)
        return corrupt(o, i, "\"output_tokens\" must be in [1, 16777216]");
      output = static_cast<int>(question->get_int64());
    }
    TRY(const int input, tokens_of(prompt->get_string(), tokenizer));
    prompts.push_back({.ids = {},
                       .text = std::string(prompt->get_string()),
                       .input_tokens = input,
                       .output_tokens = output});
  }
  std::shuffle(prompts.begin(), prompts.end(), std::mt19937_64(o.seed));
  return prompts;
}

// Prompts consist of complete lines. The number of lines depends on the mean length of the file's lines.
Result<std::vector<Prompt>> sonnet(const DatasetOptions& o, const Tokenizer& tokenizer) {
  constexpr std::string_view kBegin = "Repeat some of these lines:\n";
  TRY(const std::string text, read_file(o.path));
  std::istringstream all(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(all, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line + "\n");
  if (lines.empty()) return std::vector<Prompt>{};
  TRY(const int tokens, tokens_of(text, tokenizer));
  TRY(const int begin, tokens_of(kBegin, tokenizer));
  const double per_line = std::max(1.0, static_cast<double>(tokens) / static_cast<double>(lines.size()));
  const auto lines_of = [&](int length) {
    return static_cast<std::size_t>(std::max(0.0, std::round((length - begin) / per_line)));
  };
  const std::size_t prefix = std::min(lines_of(o.sonnet_prefix_len), lines.size()),
                    count = lines_of(o.sonnet_input_len);
  if (count < prefix)
    return invalid("sonnet-input-len", "must be at least --sonnet-prefix-len {}, got {}", o.sonnet_prefix_len,
                   o.sonnet_input_len);
  std::mt19937_64 random(o.seed);
  std::uniform_int_distribution<std::size_t> line(0, lines.size() - 1);
  std::vector<Prompt> prompts;
  for (int i = 0; i < o.num_prompts; ++i) {
    std::string prompt(kBegin);
    for (std::size_t l = 0; l < count; ++l) prompt += lines[l < prefix ? l : line(random)];
    TRY(const int input, tokens_of(prompt, tokenizer));
    prompts.push_back(
        {.ids = {}, .text = std::move(prompt), .input_tokens = input, .output_tokens = o.sonnet_output_len});
  }
  return prompts;
}

Result<std::vector<Prompt>> of_file(const DatasetOptions& o, const Tokenizer& tokenizer) {
  if (o.name == "sharegpt") return sharegpt(o, tokenizer);
  if (o.name == "sonnet") return sonnet(o, tokenizer);
  if (o.name == "custom") return custom(o, tokenizer);
  if (o.name == "hf")
    return field_failure("dataset-name", ErrorCode::unsupported,
                         "hf is not supported: download the data set, and give a sharegpt, sonnet or custom "
                         "file as --dataset-path");
  return invalid("dataset-name", "must be random, prefix_repetition, sharegpt, sonnet or custom, got \"{}\"",
                 o.name);
}

}  // namespace

Result<std::vector<Prompt>> load_dataset(const DatasetOptions& o, const Tokenizer& tokenizer) {
  if (o.name == "random") return random_prompts(o, tokenizer.vocab_size());
  if (o.name == "prefix_repetition") return repeated_prefixes(o, tokenizer.vocab_size());
  TRY(std::vector<Prompt> prompts, of_file(o, tokenizer));
  if (prompts.empty())
    return field_failure("dataset-path", ErrorCode::corrupt, "{} contains no usable prompt", o.path);
  const std::size_t count = prompts.size(), wanted = static_cast<std::size_t>(o.num_prompts);
  for (std::size_t i = count; i < wanted; ++i) prompts.push_back(prompts[i % count]);
  prompts.resize(wanted);
  return prompts;
}

}  // namespace octavo::traffic
