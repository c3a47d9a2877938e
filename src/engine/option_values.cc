#include "engine/option_values.h"

namespace octavo {

Result<ModelDType> model_dtype(const std::string& text) {
  if (text == "auto") return ModelDType::automatic;
  if (text == "bfloat16") return ModelDType::bfloat16;
  if (text == "float16" || text == "half") return ModelDType::float16;
  if (text == "float32" || text == "float") return ModelDType::float32;
  return invalid("dtype", "must be auto, bfloat16, float16 or float32, got {}", text);
}

Result<Runner> runner_of(const std::string& text) {
  if (text == "auto") return Runner::automatic;
  if (text == "generate") return Runner::generate;
  if (text == "pooling") return Runner::pooling;
  return invalid("runner", "must be auto, generate or pooling, got {}", text);
}

Result<DType> kv_cache_dtype(const std::string& text, DType activation) {
  if (text == "auto") return activation;
  if (text == "float16") return DType::f16;
  if (text == "bfloat16") return DType::bf16;
  if (text == "fp8" || text == "fp8_e4m3") return DType::f8_e4m3;
  if (text == "int8_per_token_head") return DType::i8;
  return invalid("kv_cache_dtype",
                 "must be auto, float16, bfloat16, fp8, fp8_e4m3 or int8_per_token_head, got {}", text);
}

Result<Encoding> quantization(const std::string& text, const std::string& model_dir) {
  if (text == "none") return Encoding::plain;
  if (text == "int8") return Encoding::int8;
  if (text == "int4") return Encoding::int4;
  TRY(const std::string_view method, quantization_method(model_dir));
  if (text == method || text == fmt::format("{}_marlin", method)) return Encoding::plain;
  return invalid("quantization", "must be none, int8, int4 or what the checkpoint is packed as ({}), got {}",
                 method, text);
}

}  // namespace octavo
