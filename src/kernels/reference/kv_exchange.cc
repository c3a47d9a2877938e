// The layout of blocks in this backend is the exchange layout.
#include "kernels/kv_exchange.h"

#include <cstring>

namespace octavo::reference {

const KvExchange kKvExchange{
    .layout = "rows",
    .joins = true,
    .export_block =
        [](const KvLayer& cache, std::int64_t block, std::span<std::byte> out) {
          std::memcpy(out.data(), cache.data + block * cache.stride_bytes, out.size());
        },
    .import_block =
        [](const KvLayer& cache, std::int64_t block, std::span<const std::byte> bytes) {
          std::memcpy(cache.data + block * cache.stride_bytes, bytes.data(), bytes.size());
        }};

}  // namespace octavo::reference
