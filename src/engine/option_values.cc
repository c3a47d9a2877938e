#include "engine/option_values.h"

#include <utility>

#include "weights/json.h"

namespace octavo {

Result<ModelDType> model_dtype(const std::string& text) {
  if (text == "auto") return ModelDType::automatic;
  if (text == "bfloat16") return ModelDType::bfloat16;
  if (text == "float16" || text == "half") return ModelDType::float16;
  if (text == "float32" || text == "float") return ModelDType::float32;
  return invalid("dtype", "must be auto, bfloat16, float16 or float32, got {}", text);
}

namespace {

Result<Runner> runner_of(const std::string& text) {
  if (text == "auto") return Runner::automatic;
  if (text == "generate") return Runner::generate;
  if (text == "pooling") return Runner::pooling;
  return invalid("runner", "must be auto, generate or pooling, got {}", text);
}

Result<Convert> convert_of(const std::string& text) {
  if (text == "auto") return Convert::automatic;
  if (text == "none") return Convert::none;
  if (text == "embed") return Convert::embed;
  if (text == "classify") return Convert::classify;
  return invalid("convert", "must be auto, none, embed or classify, got {}", text);
}

Result<> set_pooling_type(const std::string& text, Reading& reading) {
  if (text == "CLS") reading.pool = Pool::first;
  if (text == "LAST") reading.pool = Pool::last;
  if (text == "MEAN") reading.pool = Pool::mean;
  reading.each_token = text == "ALL";
  if (text.empty() || reading.pool || reading.each_token) return {};
  return field_failure("pooling_type", ErrorCode::unsupported,
                       "{} is not supported: must be CLS, LAST, MEAN or ALL", text);
}

}  // namespace

Result<Reading> reading_of(const EngineOptions& options) {
  Reading reading;
  TRY(reading.runner, runner_of(options.model.runner));
  TRY(reading.convert, convert_of(options.model.convert));
  TRY_VOID(set_pooling_type(options.model.pooling_type, reading));
  reading.mmproj = options.model.mmproj_file();
  if (options.model.hf_overrides.empty()) return reading;
  TRY(boost::json::value overrides, parse_json(options.model.hf_overrides, "hf_overrides"));
  if (!overrides.is_object()) return invalid("hf_overrides", "must be a JSON object");
  reading.overrides = std::move(overrides.get_object());
  return reading;
}

Result<std::optional<DType>> kv_cache_dtype(const std::string& text) {
  if (text == "auto") return std::nullopt;
  if (text == "float16") return DType::f16;
  if (text == "bfloat16") return DType::bf16;
  if (text == "fp8" || text == "fp8_e4m3") return DType::f8_e4m3;
  if (text == "int8_per_token_head") return DType::i8;
  if (text == "int4_per_token_head") return DType::i4;
  return invalid(
      "kv_cache_dtype",
      "must be auto, float16, bfloat16, fp8, fp8_e4m3, int8_per_token_head or int4_per_token_head, got {}",
      text);
}

Result<Encoding> quantization(const std::string& text, const std::string& model_dir) {
  if (text == "none") return Encoding::plain;
  if (text == "int8") return Encoding::int8;
  if (text == "int4") return Encoding::int4;
  TRY(const std::string_view method, quantization_method(model_dir));
  if (text == method || text == fmt::format("{}_marlin", method)) return Encoding::plain;
  const bool packed = method != "none";
  return invalid("quantization",
                 "must be int8 or int4 (quantises plain matrices while loading){} or none, got {}",
                 packed ? fmt::format(", {} (the checkpoint's method)", method) : "", text);
}

}  // namespace octavo
