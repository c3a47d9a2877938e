// Cases of `octavo bench ops`: operators with the dimensions of real models.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/machine_limits.h"
#include "kernels/ops.h"

namespace octavo {

struct OpShapes {
  std::string_view name;
  std::int64_t dim, q_heads, kv_heads, head_dim, hidden, vocab;
};
inline constexpr OpShapes kHostShapes[] = {{"Llama-3.2-1B", 2048, 32, 8, 64, 8192, 128256},
                                           {"Qwen3-0.6B", 1024, 16, 8, 128, 3072, 151936}};
inline constexpr OpShapes kDeviceShapes[] = {{"Llama-3.2-1B", 2048, 32, 8, 64, 8192, 128256},
                                             {"Llama-3-8B", 4096, 32, 8, 128, 14336, 128256}};

// Dimensions that all models with latent attention have in common. A token's key
// has a latent part (kLatent) and a rotated part (kRotary). A head's value has kLatentHead elements, and so
// does the part of a head's query that is not rotated.
inline constexpr int kLatent = 512, kRotary = 64, kLatentHead = 128;

struct OpCase {
  std::string operation;
  std::string shape;
  std::string format;
  int calls;
  double bytes;       // bytes that a call must read from memory (weights, KV)
  double operations;  // per call; a multiply-add counts as two operations
  Arithmetic arithmetic = Arithmetic::f32;
  std::function<void()> run = {};
};

// Receives the cases. `wanted` is called before the data of the case exists, with a case without `run`.
struct OpVisitor {
  std::function<bool(const OpCase&)> wanted;
  std::function<void(const OpCase&)> measure;
  // Minimum bytes of all copies of a matrix, or of a layer's keys and values. It is larger than any CPU
  // cache, so that the data comes from memory as in a real model.
  double cold_bytes = 256e6;

  // Measures the case if it is wanted. A run makes c.calls equal calls.
  void measure_calls(OpCase c, const std::function<void()>& call) const {
    if (!wanted(c)) return;
    c.run = [&] {
      for (int i = 0; i < c.calls; ++i) call();
    };
    measure(c);
  }
};

template <class T>
Result<Buffer> on_device(Backend& backend, const std::vector<T>& items) {
  TRY(Buffer memory, backend.device->allocate(items.size() * sizeof(T)));
  backend.device->upload(*backend.stream, memory.view(DType::u8, {static_cast<std::int64_t>(memory.bytes())}),
                         items.data());
  backend.stream->synchronize();
  return memory;
}

// Cases of operators on `n` rows. A case reads weights that stay in the cache.
struct RowCases {
  Backend& backend;
  const OpShapes& shapes;
  const std::int64_t n;
  const OpVisitor& visitor;
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;

  Result<Buffer> floats(std::int64_t count, float value = 0) const {
    return on_device(backend, std::vector<float>(static_cast<std::size_t>(count), value));
  }
  void measure(std::string_view operation, int calls, double operations,
               const std::function<void()>& call) const {
    visitor.measure_calls({.operation = fmt::format("{} {}", operation, shapes.name),
                           .shape = fmt::format("{} rows", n),
                           .format = "f32",
                           .calls = calls,
                           .bytes = 0,
                           .operations = operations},
                          call);
  }
};

// Each function skips formats that the backend does not support.
Result<> product_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> attention_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> latent_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> expert_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> recurrent_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> compressed_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> row_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> stream_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> sample_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);
Result<> host_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor);

inline constexpr auto kOpCaseParts = {product_cases,   attention_cases, latent_cases, expert_cases,
                                      recurrent_cases, row_cases,       stream_cases, compressed_cases,
                                      sample_cases,    host_cases};

}  // namespace octavo
