#include "model/gguf/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace octavo {
namespace {

constexpr std::int64_t kLabelsMax = 65536;

// Sets the scores of a reranker or classifier. They are computed from the last token's row. Encoders compute
// them from the first row or (ModernBERT) from the mean, after one more layer.
Result<> set_scores(ModelSpec& spec, const Gguf& gguf, std::string_view architecture) {
  const StoredTensor* scores = gguf.find("cls.output.weight");
  const bool encoder = architecture == "bert", modern = architecture == "modern-bert";
  for (const char* needed : {"cls.output.weight", "cls.weight"}) {
    const StoredTensor* tensor = gguf.find(needed);
    if (tensor == nullptr && (tensor == scores || encoder || modern))
      return failure(ErrorCode::unsupported,
                     "{}: {}.pooling_type is 4 (scores), but the tensor {} is missing", gguf.metadata.what(),
                     architecture, needed);
  }
  if (scores->shape.size() != 2 || scores->shape[0] > kLabelsMax)
    return failure(ErrorCode::corrupt,
                   "{}: cls.output.weight must be a matrix with one row per label, 1 to {} rows",
                   gguf.metadata.what(), kLabelsMax);
  Head head{.pool = modern ? Pool::mean : encoder ? Pool::first : Pool::last};
  if (gguf.find("cls.weight") != nullptr) {
    HeadLayer dense{.name = "cls",
                    .outputs = spec.dim,
                    .bias = gguf.find("cls.bias") != nullptr,
                    .activation = modern ? Activation::gelu : Activation::tanh};
    if (gguf.find("cls.norm.weight") != nullptr) {
      dense.norm = spec.final_norm;
      dense.norm.bias = gguf.find("cls.norm.bias") != nullptr;
      dense.norm_name = "cls.norm";
    }
    head.layers.push_back(std::move(dense));
  }
  TRY(const std::vector<std::string_view> labels,
      gguf.metadata.texts(fmt::format("{}.classifier.output_labels", architecture)));
  HeadLayer last{.name = "cls.output",
                 .outputs = static_cast<int>(scores->shape[0]),
                 .bias = gguf.find("cls.output.bias") != nullptr};
  if (std::ranges::equal(labels, std::array{"yes", "no"}) && last.outputs == 2 && !last.bias) {
    last.rows = {0, 1};  // Qwen3's rerankers: the logit of "yes" minus the logit of "no"
    last.table = 2;
    last.outputs = 1;
    last.difference = true;
  }
  for (int i = 0; i < last.outputs; ++i)
    head.labels.push_back(std::ssize(labels) == last.outputs
                              ? std::string(labels[static_cast<std::size_t>(i)])
                              : fmt::format("LABEL_{}", i));
  head.label_activation = last.outputs == 1 ? LabelActivation::sigmoid : LabelActivation::softmax;
  head.layers.push_back(std::move(last));
  spec.head = std::move(head);
  return {};
}

}  // namespace

Result<> set_gguf_head(ModelSpec& spec, const Gguf& gguf, std::string_view architecture) {
  TRY(const auto causal, gguf.metadata.boolean(fmt::format("{}.attention.causal", architecture)));
  for (LayerSpec& layer : spec.layers)
    if (auto* attention = std::get_if<Attention>(&layer.mixer); attention && !causal.value_or(true))
      attention->mask.causal = false;
  const std::string key = fmt::format("{}.pooling_type", architecture);
  constexpr std::pair<double, Pool> kPools[] = {{1, Pool::mean}, {2, Pool::first}, {3, Pool::last}};
  TRY(const auto stored, gguf.metadata.number(key));
  if (stored == 4) return set_scores(spec, gguf, architecture);
  if (stored.value_or(0) != 0) {
    const auto* found = std::ranges::find(kPools, *stored, &std::pair<double, Pool>::first);
    if (found == std::end(kPools))
      return field_failure("pooling_type", ErrorCode::unsupported,
                           "{}: {} is {}, which is not supported: must be 1 (mean), 2 (the first token's), 3 "
                           "(the last one's) or 4 (scores)",
                           gguf.metadata.what(), key, *stored);
    if (!spec.head) spec.head = Head{.normalise = true};
    spec.head->pool = found->second;
  }
  // Layers that Sentence Transformers adds to EmbeddingGemma.
  for (const char* matrix : {"dense_2", "dense_3"})
    if (const StoredTensor* tensor = gguf.find(fmt::format("{}.weight", matrix));
        tensor != nullptr && spec.head && tensor->shape[0] <= 1 << 20)
      spec.head->layers.push_back(
          {.name = matrix, .outputs = static_cast<int>(tensor->shape[0]), .bias = false});
  return {};
}

}  // namespace octavo
