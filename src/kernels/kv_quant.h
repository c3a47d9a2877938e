// Converts keys and values to the cache's formats of 8 and 4 bits; all backends use it.
//
// f8_e4m3 rounds to nearest with scale 1; numbers out of range become the largest number. i8 has a scale per
// token and head that maps the largest magnitude to 127 (vLLM's int8_per_token_head).
// i4 is in kv_codes.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernels/attention_plan.h"
#include "kernels/kv_codes.h"

namespace octavo {

// Returns the scale of one token's vector, which maps the largest magnitude to largest_code. Returns NaN if
// the vector contains infinity or NaN.
template <class T>
float kv_scale(std::span<const T> values, float largest_code = 127.0f) {
  T largest = 0;
  for (const T value : values) {
    const T magnitude = std::abs(value);
    if (!(magnitude <= std::numeric_limits<float>::max())) return std::numeric_limits<float>::quiet_NaN();
    largest = magnitude > largest ? magnitude : largest;
  }
  return static_cast<float>(largest) / largest_code;
}

inline std::int8_t kv_quantized(float value, float scale) {
  if (!(scale > 0)) return 0;
  const float q = std::nearbyint(value / scale);
  return static_cast<std::int8_t>(q > 127 ? 127 : q < -127 ? -127 : q);
}

// Returns the rotated vector (kv_codes.h).
std::vector<float> rotated_kv(std::span<const double> values);

// Returns unsupported for kv_cache_dtype if keys and values cannot have the format spec.dtype. `backend` is
// the name for the error.
Result<> check_kv_format(const KvSpec& spec, std::string_view backend);

}  // namespace octavo
