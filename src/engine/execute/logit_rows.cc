#include "engine/execute/logit_rows.h"

#include <algorithm>

namespace octavo {

Result<> LogitRows::reserve(std::size_t rows, std::size_t columns, std::size_t adapters, Backend& backend) {
  most_ = rows;
  numbers_.add<std::int32_t>(rows + 1);
  if (adapters > 0) {
    numbers_.add<std::int32_t>(rows);
    numbers_.add<std::int32_t>(adapters + 1);
  }
  TRY_VOID(numbers_.fit(*backend.device, *backend.stream));
  TRY(results_, backend.device->allocate(rows * columns * sizeof(float)));
  return {};
}

Result<LogitRows::Uploaded> LogitRows::upload(Backend& backend, std::span<const std::int32_t> rows,
                                              std::span<const std::int32_t> by_adapter,
                                              std::span<const std::int32_t> adapter_starts) {
  numbers_.clear();
  const auto row_part = numbers_.add<std::int32_t>(rows.size());
  const auto adapter_part = numbers_.add<std::int32_t>(by_adapter.size());
  const auto start_part = numbers_.add<std::int32_t>(adapter_starts.size());
  TRY_VOID(numbers_.fit(*backend.device, *backend.stream));
  std::ranges::copy(rows, numbers_.host(row_part).begin());
  std::ranges::copy(by_adapter, numbers_.host(adapter_part).begin());
  std::ranges::copy(adapter_starts, numbers_.host(start_part).begin());
  numbers_.upload(*backend.device, *backend.stream);
  return Uploaded{.rows = numbers_.device(row_part),
                  .by_adapter = numbers_.device(adapter_part),
                  .adapter_starts = numbers_.device(start_part)};
}

}  // namespace octavo
