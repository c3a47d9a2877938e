#include "timing/read_timing.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <span>

#include "timing/number_fields.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::size_t kFileBytesMax = 1 << 16;

constexpr NumberField<ModelFigures> kModelFields[] = {
    {"weight_bytes", &ModelFigures::weight_bytes, true},
    {"operations_per_token", &ModelFigures::operations_per_token, true},
    {"operations_per_pair", &ModelFigures::operations_per_pair},
    {"kv_bytes_per_token", &ModelFigures::kv_bytes_per_token, true},
};
constexpr NumberField<DeviceFigures> kDeviceFields[] = {
    {"bytes_per_second", &DeviceFigures::bytes_per_second, true},
    {"operations_per_second", &DeviceFigures::operations_per_second, true},
    {"memory_bytes", &DeviceFigures::memory_bytes, true},
    {"bandwidth_share", &DeviceFigures::bandwidth_share},
    {"compute_share", &DeviceFigures::compute_share},
    {"step_us", &DeviceFigures::step_us},
};
constexpr NumberField<StepTiming> kTimingFields[] = {
    {"fixed_us", &StepTiming::fixed_us}, {"weights_us", &StepTiming::weights_us},
    {"token_us", &StepTiming::token_us}, {"kv_token_us", &StepTiming::kv_token_us},
    {"pair_us", &StepTiming::pair_us},
};

template <class Figures, std::size_t N>
Result<Figures> known_or_read(const std::string& name, std::span<const Named<Figures>> known,
                              const NumberField<Figures> (&fields)[N]) {
  const auto found = std::ranges::find(known, name, &Named<Figures>::name);
  if (found != known.end()) return found->figures;
  return read_number_fields(name, fields);
}

}  // namespace

Result<json::object> read_json_object(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return failure(ErrorCode::not_found, "{}: cannot read the file", path);
  std::string text(kFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kFileBytesMax)
    return failure(ErrorCode::invalid_argument, "{}: the file has more than {} bytes", path, kFileBytesMax);
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object())
    return failure(ErrorCode::invalid_argument, "{}: the file must contain a JSON object", path);
  return std::move(value.get_object());
}

Result<ModelFigures> read_model_figures(const std::string& name_or_path) {
  return known_or_read(name_or_path, known_models(), kModelFields);
}

Result<DeviceFigures> read_device_figures(const std::string& name_or_path) {
  TRY(const DeviceFigures device, known_or_read(name_or_path, known_devices(), kDeviceFields));
  if (!(device.bandwidth_share > 0)) return invalid("bandwidth_share", "must be above 0");
  if (!(device.compute_share > 0)) return invalid("compute_share", "must be above 0");
  return device;
}

Result<StepTiming> read_step_timing(const std::string& path) {
  return read_number_fields(path, kTimingFields);
}

}  // namespace octavo
