#include "app/sampling_flags.h"

#include <algorithm>

namespace octavo {
namespace {

struct SamplingFlag {
  const char* name;
  const char* field;
  const char* help;
};

constexpr SamplingFlag kNumbers[] = {
    {"--temperature", "temperature", "0 for the most likely token, up to 2"},
    {"--top-p", "top_p", "Keep the most likely tokens up to this share"},
    {"--min-p", "min_p", "Keep tokens at least this likely, relative to the best"},
    {"--presence-penalty", "presence_penalty", "Against tokens that have appeared"},
    {"--frequency-penalty", "frequency_penalty", "Against tokens by how often they appeared"},
    {"--repetition-penalty", "repetition_penalty", "Divides the logits of tokens that have appeared"},
};
constexpr SamplingFlag kIntegers[] = {
    {"--max-tokens", "max_tokens", "Most tokens of an answer"},
    {"--min-tokens", "min_tokens", "Tokens before an answer may end"},
    {"--top-k", "top_k", "Number of most likely tokens to keep"},
    {"--sampling-seed", "seed", "Makes the draws repeatable"},
    {"-n,--n", "n", "Answers to each prompt"},
};

}  // namespace

void add_sampling_flags(CLI::App& command, boost::json::object& body) {
  for (const SamplingFlag& flag : kNumbers) {
    command
        .add_option_function<double>(
            flag.name, [&body, flag](double value) { body[flag.field] = value; }, flag.help)
        ->group("Sampling");
  }
  for (const SamplingFlag& flag : kIntegers) {
    command
        .add_option_function<std::int64_t>(
            flag.name, [&body, flag](std::int64_t value) { body[flag.field] = value; }, flag.help)
        ->group("Sampling");
  }
  command
      .add_option_function<std::vector<std::string>>(
          "--stop",
          [&body](const std::vector<std::string>& stops) {
            body["stop"] = boost::json::array(stops.begin(), stops.end());
          },
          "Text that ends an answer; may be given several times")
      ->group("Sampling");
  command
      .add_flag_callback(
          "--ignore-eos", [&body] { body["ignore_eos"] = true; }, "Continue after end-of-text tokens")
      ->group("Sampling");
}

}  // namespace octavo
