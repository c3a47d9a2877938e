#include "request/image_part.h"

#include <array>
#include <cstdint>

namespace octavo {

namespace {

Result<> check_sound(std::span<const ImagePart> sounds, const EngineInfo& engine) {
  if (sounds.size() != 1)
    return invalid("file", "{} transcribes sound: use /v1/audio/transcriptions or /v1/audio/translations",
                   engine.architecture);
  const std::size_t bytes =
      sizeof(float) * static_cast<std::size_t>(engine.sound.mels) * static_cast<std::size_t>(engine.sound.frames);
  if (sounds[0].pixels.size() != bytes || sounds[0].tokens != 0)
    return invalid("file", "a spectrogram has {} bytes, got {}", bytes, sounds[0].pixels.size());
  return {};
}

Hash128 hash_of(std::span<const std::uint64_t> numbers) {
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(numbers), 0);
}

}  // namespace

Result<> check_images(std::span<const ImagePart> images, std::size_t prompt_tokens,
                      const EngineInfo& engine) {
  if (engine.sound.mels > 0) return check_sound(images, engine);
  if (images.empty()) return {};
  const EngineInfo::ImageRule& rule = engine.image;
  if (rule.tokens == 0) return invalid("images", "{} is not a multimodal model", engine.architecture);
  std::int64_t end = 0;
  for (const ImagePart& image : images) {
    if (image.tokens != rule.tokens)
      return invalid("images", "an image stands for {} tokens, got {}", rule.tokens, image.tokens);
    const std::size_t bytes =
        std::size_t{3} * static_cast<std::size_t>(rule.size) * static_cast<std::size_t>(rule.size);
    if (image.pixels.size() != bytes)
      return invalid("images", "an image has {} bytes of pixels, got {}", bytes, image.pixels.size());
    if (image.first < end ||
        image.first + std::int64_t{image.tokens} > static_cast<std::int64_t>(prompt_tokens))
      return invalid("images", "tokens [{}, {}) are not behind the image before, or not in the prompt of {}",
                     image.first, image.first + std::int64_t{image.tokens}, prompt_tokens);
    end = image.first + image.tokens;
  }
  return {};
}

std::vector<Hash128> image_identities(Hash128 identity, std::span<const ImagePart> images, int block_size) {
  std::vector<Hash128> identities;
  for (const ImagePart& image : images) {
    if (image.tokens == 0) continue;
    const int last = (image.first + image.tokens - 1) / block_size;
    identities.resize(static_cast<std::size_t>(last) + 1, identity);
    for (int block = image.first / block_size; block <= last; ++block) {
      Hash128& own = identities[static_cast<std::size_t>(block)];
      const auto place =
          static_cast<std::uint64_t>(std::int64_t{image.first} - std::int64_t{block} * block_size);
      own = hash_of(std::array<std::uint64_t, 5>{own.low, own.high, image.digest.low, image.digest.high, place});
    }
  }
  return identities;
}

Hash128 with_sounds(Hash128 identity, std::span<const ImagePart> images) {
  for (const ImagePart& image : images)
    if (image.tokens == 0)
      identity = hash_of(
          std::array<std::uint64_t, 4>{identity.low, identity.high, image.digest.low, image.digest.high});
  return identity;
}

}  // namespace octavo
