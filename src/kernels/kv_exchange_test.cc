// Tests the export and import of KV blocks: every backend must export the same bytes for the same keys and
// values.
#include "kernels/kv_exchange.h"

#include <gtest/gtest.h>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

constexpr std::int64_t kBlocks = 3;

// KV cache of the second of three layers. All bytes are initialised to a value that no write produces.
class Cache {
 public:
  Cache(Backend& backend, const KvSpec& spec)
      : backend_(backend),
        part_(backend.ops.kv_block_bytes(spec)),
        bytes_(static_cast<std::size_t>(3 * kBlocks * part_), kUntouched),
        memory_(backend.device->allocate(bytes_.size()).value()) {
    backend.device->upload(*backend.stream, all(), bytes_.data());
    backend.stream->synchronize();
    layer = {static_cast<std::byte*>(memory_.data()) + part_, kBlocks, 3 * part_, spec};
  }
  // Returns true if only this layer's part of the block was written.
  bool wrote_only(std::int64_t block) {
    backend_.device->download(*backend_.stream, bytes_.data(), all());
    backend_.stream->synchronize();
    for (std::int64_t i = 0; i < std::ssize(bytes_); ++i) {
      const bool inside = i / part_ == 3 * block + 1;
      if (!inside && bytes_[static_cast<std::size_t>(i)] != kUntouched) return false;
    }
    return true;
  }
  KvLayer layer;

 private:
  static constexpr std::byte kUntouched{0x5A};
  View all() const { return memory_.view(DType::u8, {std::ssize(bytes_)}); }

  Backend& backend_;
  std::int64_t part_;
  std::vector<std::byte> bytes_;
  Buffer memory_;
};

std::vector<KvSpec> specs() {
  std::vector<KvSpec> all;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f8_e4m3, DType::i8, DType::i4})
    for (const int head_dim : {8, 40, 64, 256})
      for (const int block_size : {16, 48}) all.push_back({2, head_dim, block_size, dtype});
  return all;
}

class KvExchange : public testing::TestWithParam<TestBackend> {
 public:
  // Returns null if the backend is not available on this machine, or if it cannot export blocks.
  std::unique_ptr<Backend> backend() const {
    auto made = GetParam().make(1);
    if (!made || kv_exchange(made->name) == nullptr) return nullptr;
    return std::make_unique<Backend>(*std::move(made));
  }
};

TEST_P(KvExchange, WhatIsTakenInComesOutAgain) {
  const auto backend = this->backend();
  if (!backend) GTEST_SKIP();
  TestRandom random(1);
  std::vector<KvSpec> all = specs();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i8})
    all.push_back({1, 40, 48, dtype, 32});  // latent attention: values are parts of the keys
  for (const KvSpec& spec : all) {
    Cache cache(*backend, spec);
    std::vector<std::byte> sent(static_cast<std::size_t>(kv_exchange_bytes(spec))), got = sent;
    for (std::byte& byte : sent) byte = static_cast<std::byte>(random.integer(0, 255));
    kv_exchange(backend->name)->import_block(cache.layer, 1, sent);
    EXPECT_TRUE(cache.wrote_only(1));
    kv_exchange(backend->name)->export_block(cache.layer, 1, got);
    EXPECT_EQ(got, sent) << name(spec.dtype) << ", head_dim " << spec.head_dim << ", block "
                         << spec.block_size;
  }
}

std::vector<std::byte> stored(Backend& backend, const KvSpec& spec, const TestTensor& qkv) {
  Cache cache(backend, spec);
  std::vector<std::int64_t> slots(static_cast<std::size_t>(spec.block_size));
  std::iota(slots.begin(), slots.end(), spec.block_size);  // slots in block 1
  const std::int64_t n = spec.block_size;
  const TestTensor q(DType::f32, {n, spec.kv_heads, spec.head_dim});
  OnDevice on(backend);
  backend.ops.qkv_store(*backend.stream, {.qkv = on(qkv.view()),
                                          .q_heads = spec.kv_heads,
                                          .slots = on(View::of(slots.data(), DType::i64, {n})),
                                          .cache = cache.layer,
                                          .q_out = on(q.view())});
  backend.stream->synchronize();
  std::vector<std::byte> out(static_cast<std::size_t>(kv_exchange_bytes(spec)));
  kv_exchange(backend.name)->export_block(cache.layer, 1, out);
  return out;
}

TEST_P(KvExchange, StoredKeysAndValuesAreTheReferencesToTheBit) {
  const auto backend = this->backend();
  if (!backend) GTEST_SKIP();
  Backend reference = make_reference_backend();
  TestRandom random(2);
  for (const KvSpec& spec : specs()) {
    const TestTensor qkv =
        random.tensor(DType::f32, {spec.block_size, 3 * spec.kv_heads * spec.head_dim}, -2, 2);
    EXPECT_EQ(stored(*backend, spec, qkv), stored(reference, spec, qkv))
        << name(spec.dtype) << ", head_dim " << spec.head_dim << ", block " << spec.block_size;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, KvExchange, testing::ValuesIn(test_backends()), test_backend_name);

}  // namespace
}  // namespace octavo
