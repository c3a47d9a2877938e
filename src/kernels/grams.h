// Rows of token sequences in tables, for the backends in host memory.
#pragma once

#include <algorithm>

#include "kernels/host_device.h"
#include "kernels/ops.h"

namespace octavo {

inline void gram_rows_on_host(const GramRowsArgs& args) {
  check_indices("token id", args.ids, args.vocab);
  const auto* const ids = args.ids.as<std::int32_t>();
  const auto* const starts = args.plan.starts.as<std::int32_t>();
  const std::int64_t most = args.state.size(2);
  for (std::int64_t s = 0; s < args.plan.slots.size(0); ++s) {
    float* const before = args.state.row<float>(args.plan.slots.as<std::int32_t>()[s]);
    for (std::int64_t t = starts[s]; t < starts[s + 1]; ++t) {
      if (args.plan.positions.as<std::int32_t>()[t] == 0) std::fill_n(before, most, 0.0F);
      std::int64_t known[kMaxGram] = {ids[t]};
      for (std::int64_t d = 0; d < most && before[d] > 0; ++d) {
        const auto id = static_cast<std::int32_t>(before[d]) - 1;
        if (id == args.stop) break;
        known[d + 1] = id;
      }
      for (std::int64_t i = 0; i < std::ssize(args.tables); ++i) {
        const GramTable& table = args.tables[static_cast<std::size_t>(i)];
        std::int64_t row = 0;
        for (int d = table.length - 1; d >= 0; --d) row = (row * args.vocab + known[d]) % table.rows;
        args.rows.row<std::int32_t>(i)[t] = static_cast<std::int32_t>(row);
      }
      std::copy_backward(before, before + most - 1, before + most);
      before[0] = static_cast<float>(ids[t] + 1);
      if (const std::int32_t copy = args.plan.copies ? args.plan.copies.as<std::int32_t>()[t] : -1; copy >= 0)
        std::copy_n(before, most, args.state.row<float>(copy));
    }
  }
}

}  // namespace octavo
