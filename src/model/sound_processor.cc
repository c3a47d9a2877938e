#include "model/sound_processor.h"

#include "model/processor_file.h"

namespace octavo {

Result<media::MelConfig> read_sound_processor(const std::string& directory) {
  TRY(const Config config, read_processor_file(directory, "feature_extractor"));
  TRY(const std::string kind, config.text("feature_extractor_type", "WhisperFeatureExtractor"));
  if (kind != "WhisperFeatureExtractor")
    return field_failure("feature_extractor_type", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be WhisperFeatureExtractor",
                         config.where("feature_extractor_type"), kind);
  const auto must_be = [&](std::string_view field, int value) -> Result<> {
    TRY_VOID(config.integer(field, {value, value}, value));
    return {};
  };
  TRY_VOID(must_be("sampling_rate", media::MelConfig::kRate));
  TRY_VOID(must_be("n_fft", media::MelConfig::kFft));
  TRY_VOID(must_be("hop_length", media::MelConfig::kHop));
  media::MelConfig out;
  TRY(out.mels, config.integer("feature_size", {1, 1024}, out.mels));
  TRY(out.seconds, config.integer("chunk_length", {1, 600}, out.seconds));
  return out;
}

}  // namespace octavo
