// Measures the errors of number formats: format_error IDS REFERENCE MODEL ...
// Each line of IDS is a sequence of token ids. Predictions of ids with a '+' are evaluated. REFERENCE is
// computed in f32. Each MODEL is a directory or a GGUF file, optionally followed by "+int8" or "+int4"
// (quantised while loading) or by the KV cache's format, such as "@i8". It is computed as in `octavo serve`.
// The output has one line per model: mean Kullback-Leibler divergence from the reference, share of
// predictions with the same most likely token, perplexity, size of the prepared weights.
// tools/formats/error_table.py and cache_error_table.py run this program.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

struct Sequence {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> counted;  // indices of the evaluated tokens in ids; never 0
};

struct Run {
  std::int64_t vocab;
  std::size_t weight_bytes;
  std::vector<float> logits = {};       // [predictions, vocab]
  std::vector<std::int32_t> next = {};  // the token that follows each prediction

  const float* row(std::size_t i) const { return logits.data() + static_cast<std::int64_t>(i) * vocab; }
  std::int64_t first_choice(std::size_t i) const { return std::max_element(row(i), row(i) + vocab) - row(i); }
};

Result<std::vector<Sequence>> read_sequences(const std::string& path) {
  std::ifstream file(path);
  std::vector<Sequence> sequences;
  for (std::string line; std::getline(file, line);) {
    std::istringstream numbers(line);
    Sequence sequence;
    for (std::string number; numbers >> number;) {
      if (number.starts_with('+') && !sequence.ids.empty()) sequence.counted.push_back(sequence.ids.size());
      sequence.ids.push_back(std::stoi(number));
    }
    if (!sequence.counted.empty()) sequences.push_back(std::move(sequence));
  }
  if (sequences.empty()) return failure(ErrorCode::io, "{} holds no sequences", path);
  return sequences;
}

Result<Run> run(std::string directory, ModelDType dtype, const std::vector<Sequence>& sequences) {
  LoadOptions options{.dtype = dtype};
  for (const Encoding encoding : {Encoding::int8, Encoding::int4}) {
    const std::string end = fmt::format("+{}", name(encoding));
    if (!directory.ends_with(end)) continue;
    options.quantization = encoding;
    directory.resize(directory.size() - end.size());
  }
  std::optional<DType> cache;
  for (const DType type : {DType::f32, DType::bf16, DType::f8_e4m3, DType::i8, DType::i4}) {
    const std::string end = fmt::format("@{}", name(type));
    if (!directory.ends_with(end)) continue;
    cache = type;
    directory.resize(directory.size() - end.size());
  }
  TRY(Backend backend, make_cpu_backend({}));
  TRY(const auto model, Model::load(directory, backend, options));
  Run out{.vocab = model->spec.vocab, .weight_bytes = model->weight_bytes};
  for (const Sequence& sequence : sequences) {
    const int length = static_cast<int>(sequence.ids.size());
    TRY(const auto logits,
        golden::run(*model, backend, sequence.ids, {length}, {.dtype = cache.value_or(model->activation)}));
    for (const std::size_t position : sequence.counted) {
      const auto row = logits.begin() + static_cast<std::int64_t>(position - 1) * out.vocab;
      out.logits.insert(out.logits.end(), row, row + out.vocab);
      out.next.push_back(sequence.ids[position]);
    }
  }
  return out;
}

double perplexity(const Run& run) {
  double sum = 0;
  for (std::size_t i = 0; i < run.next.size(); ++i) {
    const float* row = run.row(i);
    const double top = row[run.first_choice(i)];
    double all = 0;
    for (std::int64_t k = 0; k < run.vocab; ++k) all += std::exp(row[k] - top);
    sum += top + std::log(all) - row[run.next[i]];
  }
  return std::exp(sum / static_cast<double>(run.next.size()));
}

Result<> print_table(const std::string& ids, std::span<char* const> models) {
  TRY(const std::vector<Sequence> sequences, read_sequences(ids));
  TRY(const Run reference, run(models[0], ModelDType::float32, sequences));
  for (std::size_t m = 0; m < models.size(); ++m) {
    TRY(const Run made, run(models[m], m == 0 ? ModelDType::float32 : ModelDType::automatic, sequences));
    std::size_t same = 0;
    for (std::size_t i = 0; i < made.next.size(); ++i)
      same += made.first_choice(i) == reference.first_choice(i) ? 1 : 0;
    fmt::print("{}\t{:.6f}\t{:.5f}\t{:.4f}\t{}\n", models[m],
               golden::mean_kl(reference.logits, made.logits, made.vocab),
               static_cast<double>(same) / static_cast<double>(made.next.size()), perplexity(made),
               made.weight_bytes);
  }
  return {};
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: format_error IDS REFERENCE MODEL ...\n");
    return 2;
  }
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  const auto done = octavo::print_table(arguments[1], arguments.subspan(2));
  if (!done) fmt::print(stderr, "format_error: {}\n", done.error().message);
  return done ? 0 : 1;
}
