// Fuzzes the decoder: any bytes give samples or an error.
#include <cmath>

#include "base/check.h"
#include "media/sound.h"

// libsndfile 1.2 leaks vorbis_info (6 kB) for some invalid Ogg files.
extern "C" const char* __lsan_default_suppressions() { return "leak:libvorbis\n"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo;
  constexpr int kRate = 16'000, kSeconds = 5;
  const auto sound = media::decode_sound(std::as_bytes(std::span(data, size)), kRate, {.seconds = kSeconds});
  if (sound) {
    CHECK(!sound->empty() && sound->size() <= std::size_t{kRate} * kSeconds, "{} samples", sound->size());
    for (const float sample : *sound) CHECK(std::isfinite(sample));
  } else {
    CHECK(sound.error().code == ErrorCode::invalid_argument, "{}", sound.error().message);
  }
  return 0;
}
