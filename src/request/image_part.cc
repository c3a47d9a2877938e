#include "request/image_part.h"

#include <array>
#include <cstdint>

namespace octavo {

Result<> check_images(std::span<const ImagePart> images, std::size_t prompt_tokens, const EngineInfo& engine) {
  if (images.empty()) return {};
  const EngineInfo::ImageRule& rule = engine.image;
  if (rule.tokens == 0) return invalid("images", "{} is not a multimodal model", engine.architecture);
  std::int64_t end = 0;
  for (const ImagePart& image : images) {
    if (image.tokens != rule.tokens)
      return invalid("images", "an image stands for {} tokens, got {}", rule.tokens, image.tokens);
    const std::size_t bytes = std::size_t{3} * static_cast<std::size_t>(rule.size) * static_cast<std::size_t>(rule.size);
    if (image.pixels.size() != bytes)
      return invalid("images", "an image has {} bytes of pixels, got {}", bytes, image.pixels.size());
    if (image.first < end || image.first + std::int64_t{image.tokens} > static_cast<std::int64_t>(prompt_tokens))
      return invalid("images", "tokens [{}, {}) are not behind the image before, or not in the prompt of {}",
                     image.first, image.first + std::int64_t{image.tokens}, prompt_tokens);
    end = image.first + image.tokens;
  }
  return {};
}

std::vector<Hash128> image_identities(Hash128 identity, std::span<const ImagePart> images, int block_size) {
  std::vector<Hash128> identities;
  for (const ImagePart& image : images) {
    const int last = (image.first + image.tokens - 1) / block_size;
    identities.resize(static_cast<std::size_t>(last) + 1, identity);
    for (int block = image.first / block_size; block <= last; ++block) {
      Hash128& own = identities[static_cast<std::size_t>(block)];
      const auto place = static_cast<std::uint64_t>(std::int64_t{image.first} - std::int64_t{block} * block_size);
      const std::array<std::uint64_t, 5> bytes{own.low, own.high, image.digest.low, image.digest.high, place};
      own = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(bytes)), 0);
    }
  }
  return identities;
}

}  // namespace octavo
