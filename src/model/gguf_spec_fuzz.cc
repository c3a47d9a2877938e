// Fuzzer. Any GGUF file must result in a network or an error, and so must its sampling parameters. The
// mutator writes valid files that differ from a llama file in one key or tensor.
#include <array>
#include <cstring>
#include <random>

#include "base/check.h"
#include "model/cache_layout.h"
#include "model/gguf_spec.h"
#include "model/inspect.h"
#include "weights/testing/gguf.h"

namespace {

using octavo::GgufBuilder;
using octavo::GgufType;

constexpr std::array kArchitectures = {"llama", "gemma2", "gemma3",   "phi3",
                                       "qwen2", "gpt2",   "stablelm", "glm4"};
constexpr std::array kKeys = {"embedding_length",
                              "block_count",
                              "context_length",
                              "feed_forward_length",
                              "attention.head_count",
                              "attention.head_count_kv",
                              "attention.key_length",
                              "attention.layer_norm_rms_epsilon",
                              "attention.layer_norm_epsilon",
                              "attention.sliding_window",
                              "attention.sliding_window_pattern",
                              "rope.dimension_count",
                              "rope.freq_base",
                              "rope.scaling.factor",
                              "rope.scaling.attn_factor",
                              "rope.scaling.original_context_length",
                              "expert_count",
                              "final_logit_softcapping"};
constexpr std::array kNumbers = {0.0, 1.0, 2.0, 4.0, 16.0, 64.0, 1e-5, 1e4, -1.0, 0.5, 1e300, -1e300};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::mt19937 random(seed);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  GgufBuilder file;
  const std::string name = kArchitectures[random() % kArchitectures.size()];
  file.text("general.architecture", name);
  if (one_in(2)) file.text(name + ".rope.scaling.type", one_in(2) ? "yarn" : "linear");
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    const std::string key = name + "." + kKeys[i];
    if (i >= 6 && one_in(2)) continue;
    if (!one_in(6)) {
      file.u32(key, i == 2 ? 4096 : i == 0 ? 64 : 4);
    } else if (one_in(2)) {
      file.value(key, GgufType::f64, GgufBuilder::raw(kNumbers[random() % kNumbers.size()]));
    } else {
      const auto count = std::uint64_t{random() % 5};
      file.value(key, GgufType::list,
                 GgufBuilder::raw(GgufType::u8) + GgufBuilder::raw(count) +
                     std::string(static_cast<std::size_t>(count), static_cast<char>(random() % 3)));
    }
  }
  const std::uint64_t rows = one_in(4) ? random() % 3 : 10;
  file.tensor("token_embd.weight", {64, rows}, 0, std::string(static_cast<std::size_t>(64 * rows * 4), '\0'));
  if (one_in(3))
    for (const char* factors : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
      const std::uint64_t count = one_in(3) ? random() % 100 : 8;
      file.tensor(factors, {count}, 0, std::string(static_cast<std::size_t>(count * 4), '\x3f'));
    }
  const std::string bytes = file.build();
  if (bytes.size() > max_size) return size;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  auto contents = octavo::parse_gguf(file, "fuzz");
  if (!contents) return 0;
  octavo::Gguf gguf{
      .files = {}, .metadata = std::move(contents->metadata), .tensors = std::move(contents->tensors)};
  std::ranges::sort(gguf.tensors, {}, &octavo::StoredTensor::name);
  const auto spec = octavo::gguf_spec(gguf);
  if (!spec) return 0;
  CHECK(octavo::count_parameters(*spec).total > 0);
  CHECK(octavo::cache_layout(*spec, {}).planes > 0);
  return 0;
}
