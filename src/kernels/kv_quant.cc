#include "kernels/kv_quant.h"

namespace octavo {

std::vector<float> rotated_kv(std::span<const double> values) {
  std::vector<float> rotated(values.begin(), values.end());
  const auto size = static_cast<std::size_t>(kv_rotation_size(static_cast<int>(values.size())));
  for (std::size_t apart = 1; apart < size; apart *= 2)
    for (std::size_t i = 0; i < rotated.size(); ++i) {
      if ((i & apart) != 0) continue;
      const float a = rotated[i], b = rotated[i + apart];
      rotated[i] = a + b;
      rotated[i + apart] = a - b;
    }
  for (float& value : rotated) value *= kv_rotation_factor(static_cast<int>(size));
  return rotated;
}

Result<> check_kv_format(const KvSpec& spec, std::string_view backend) {
  switch (spec.dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8_e4m3:
    case DType::i8:
      return {};
    case DType::i4:
      if (spec.values_in_keys == 0) return {};
      return field_failure("kv_cache_dtype", ErrorCode::unsupported,
                           "int4_per_token_head does not support latent attention, whose values are parts of "
                           "its keys: use fp8 or int8_per_token_head");
    default:
      return field_failure("kv_cache_dtype", ErrorCode::unsupported,
                           "the {} backend does not support a KV cache in {}", backend, name(spec.dtype));
  }
}

}  // namespace octavo
