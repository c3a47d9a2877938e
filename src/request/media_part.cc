#include "request/media_part.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace octavo {

namespace {

std::size_t bytes_of(const EngineInfo::SoundRule& rule) {
  return sizeof(float) * static_cast<std::size_t>(rule.mels) * static_cast<std::size_t>(rule.frames);
}

Result<> check_sound_beside(std::span<const MediaPart> sounds, const EngineInfo& engine) {
  if (sounds.size() != 1)
    return invalid("file",
                   "{} can only transcribe sound: use /v1/audio/transcriptions or /v1/audio/translations",
                   engine.architecture);
  const std::size_t bytes = bytes_of(engine.sound);
  if (sounds[0].bytes.size() != bytes || sounds[0].tokens != 0)
    return invalid("file", "a spectrogram must have {} bytes, got {}", bytes, sounds[0].bytes.size());
  return {};
}

Result<> check_source(std::span<const MediaPart> sources, const EngineInfo& engine) {
  if (sources.size() != 1)
    return invalid("prompt", "{} has an encoder for prompts, so chats are not supported: use /v1/completions",
                   engine.architecture);
  const MediaPart& source = sources[0];
  if (source.columns < 1 || source.columns > engine.source.tokens)
    return invalid("prompt", "the prompt for the encoder must have 1 to {} tokens, got {}",
                   engine.source.tokens, source.columns);
  std::vector<TokenId> ids(static_cast<std::size_t>(source.columns));
  const std::size_t bytes = ids.size() * sizeof(TokenId);
  if (source.bytes.size() != bytes || source.tokens != 0)
    return invalid("prompt", "{} tokens for the encoder must have {} bytes, got {}", source.columns, bytes,
                   source.bytes.size());
  std::memcpy(ids.data(), source.bytes.data(), bytes);
  for (const TokenId id : ids)
    if (id < 0 || id >= engine.vocab_size)
      return invalid("prompt", "token id {} is out of vocabulary: must be in [0, {})", id, engine.vocab_size);
  return {};
}

Result<> check_sound(const MediaPart& sound, const EngineInfo::SoundRule& rule) {
  if (sound.tokens < 1 || sound.tokens > rule.tokens)
    return invalid("images", "a sound must have 1 to {} tokens, got {}", rule.tokens, sound.tokens);
  const int rows = rule.frames / 2;
  if (rule.whole && !rule.trimmed && sound.tokens != rule.tokens)
    return invalid("images", "a window of sound must have {} tokens, got {}", rule.tokens, sound.tokens);
  const bool fits =
      rule.trimmed ? sound.columns == rows : sound.columns / (rows / rule.tokens) == sound.tokens;
  if (sound.columns > rows || !fits || sound.row_breaks)
    return invalid("images", "a sound of {} tokens cannot have {} rows", sound.tokens, sound.columns);
  if (sound.bytes.size() != bytes_of(rule))
    return invalid("images", "a spectrogram must have {} bytes, got {}", bytes_of(rule), sound.bytes.size());
  return {};
}

// Rejects grids that no image can have, before memory is allocated for them.
Result<> check_tiles(const MediaPart& image, const EngineInfo::ImageRule& rule) {
  constexpr int kTilesMax = 1 << 10;
  const MediaPart::Tiles& t = image.tiles;
  const auto side = static_cast<int>(std::lround(std::sqrt(rule.tokens)));
  const bool grid = t.tile_rows > 0 && t.tile_columns > 0 && t.tile_rows <= kTilesMax / t.tile_columns;
  if (grid && rule.whole_last > 0) {
    const auto seen = [&](int patches, int tiles, int tokens) {
      const int merge = rule.whole_last, all = tiles * side * merge;
      return patches <= all && patches > all - side * merge && tokens == (patches + merge - 1) / merge;
    };
    if (!seen(t.patch_rows, t.tile_rows, t.rows) || !seen(t.patch_columns, t.tile_columns, t.columns) ||
        t.out_rows != t.rows || t.out_columns != t.columns || t.top != 0 || t.left != 0)
      return invalid("images", "the patches of an image do not match its tiles");
  } else if (t.patch_rows != 0 || t.patch_columns != 0) {
    return invalid("images",
                   "this model uses all patches of an image: patch_rows and patch_columns must be 0");
  }
  if (!grid || t.top < 0 || t.left < 0 || t.rows < 0 || t.columns < 0 ||
      t.top + t.rows > t.tile_rows * side || t.left + t.columns > t.tile_columns * side || t.out_rows < 0 ||
      t.out_rows > t.rows || t.out_columns < 0 || t.out_columns > t.columns)
    return invalid("images", "the grid of tiles of an image is invalid");
  const std::int64_t tokens = tokens_of(t, rule);
  if (image.tokens == tokens) return {};
  return invalid("images", "an image with this grid must have {} tokens, got {}", tokens, image.tokens);
}

// `before` is the previous part of the prompt, or null.
Result<> check_grid(const MediaPart& image, const MediaPart* before, const EngineInfo::ImageRule& rule) {
  if (rule.tiled) return check_tiles(image, rule);
  if (image.tiles != MediaPart::Tiles())
    return invalid("images", "this model does not divide images into tiles");
  if (rule.size > 0 && image.tokens != rule.tokens)
    return invalid("images", "an image must have {} tokens, got {}", rule.tokens, image.tokens);
  if (rule.size > 0 && image.frames == 0) return {};
  if (image.tokens < 1 || image.tokens > rule.tokens)
    return invalid("images", "an image must have 1 to {} tokens, got {}", rule.tokens, image.tokens);
  if (image.row_breaks != rule.row_breaks)
    return invalid("images", "an image has {}tokens between its rows", rule.row_breaks ? "" : "no ");
  const bool follows = !image.continues || (before != nullptr && before->frames > 0 && before->time < image.time &&
                                            before->first + before->span() == image.first);
  if (image.frames < 0 || image.frames > rule.frames || image.time < 0 || !follows)
    return invalid("images", "a part of a video has {} frames from time {} on, but the limit is {}",
                   image.frames, image.time, rule.frames);
  const int grid = image.tokens - rule.marks;
  if (grid < 1 || image.columns < 1 || grid % image.columns != 0)
    return invalid("images", "an image of {} tokens cannot have {} columns", image.tokens, image.columns);
  return {};
}

std::size_t bytes_of(const MediaPart& image, const EngineInfo::ImageRule& rule) {
  const auto square = [](int side) {
    return std::size_t{3} * static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  };
  if (rule.tiled)
    return square(rule.size) * static_cast<std::size_t>(image.tiles.tiles() - (rule.whole_last > 0 ? 1 : 0));
  if (rule.size > 0) return square(rule.size);
  return square(rule.unit) * static_cast<std::size_t>(image.tokens - rule.marks) *
         static_cast<std::size_t>(std::max(1, image.frames));
}

Result<> check_image(const MediaPart& image, const MediaPart* before, const EngineInfo::ImageRule& rule) {
  TRY_VOID(check_grid(image, before, rule));
  const std::size_t bytes = bytes_of(image, rule);
  if (image.bytes.size() != bytes)
    return invalid("images", "an image must have {} bytes of pixels, got {}", bytes, image.bytes.size());
  return {};
}

bool has_embeds(std::span<const MediaPart> media) { return std::ranges::any_of(media, &MediaPart::embeds); }

Result<> check_embeds(std::span<const MediaPart> media, std::size_t prompt_tokens, const EngineInfo& engine) {
  const MediaPart& rows = media[0];
  if (engine.prompt_embeds == 0)
    return invalid("prompt_embeds", "is not enabled: start the server with --enable-prompt-embeds");
  const bool is_image = rows.columns != 0 || rows.row_breaks || rows.frames != 0 || rows.time != 0 ||
                        rows.continues || rows.tiles != MediaPart::Tiles();
  const std::size_t bytes = prompt_tokens * static_cast<std::size_t>(engine.prompt_embeds) * sizeof(float);
  if (media.size() > 1 || is_image || rows.first != 0 || rows.tokens != static_cast<int>(prompt_tokens) ||
      rows.bytes.size() != bytes)
    return invalid("prompt_embeds", "must have {} rows of {} f32 numbers", prompt_tokens,
                   engine.prompt_embeds);
  return {};
}

Hash128 hash_of(std::span<const std::uint64_t> numbers) {
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(numbers), 0);
}

}  // namespace

std::int64_t tokens_of(const MediaPart::Tiles& tiles, const EngineInfo::ImageRule& rule) {
  const std::int64_t grid = std::int64_t{tiles.out_rows} * (tiles.out_columns + 1);
  return grid + rule.tokens + (rule.whole_last > 0 ? 1 + std::lround(std::sqrt(rule.tokens)) : 0);
}

Result<> check_media(std::span<const MediaPart> images, std::size_t prompt_tokens,
                      const EngineInfo& engine) {
  if (has_embeds(images)) return check_embeds(images, prompt_tokens, engine);
  if (engine.source.tokens > 0) return check_source(images, engine);
  const bool has_audio = engine.sound.mels > 0;
  if (has_audio && engine.sound.tokens == 0) return check_sound_beside(images, engine);
  if (images.empty()) return {};
  if (!has_audio && engine.image.tokens == 0)
    return invalid("images", "{} is not a multimodal model: send text only, or use another model",
                   engine.architecture);
  std::int64_t end = 0;
  const MediaPart* before = nullptr;
  for (const MediaPart& image : images) {
    TRY_VOID(has_audio ? check_sound(image, engine.sound) : check_image(image, before, engine.image));
    before = &image;
    if (image.first < end ||
        image.first + std::int64_t{image.span()} > static_cast<std::int64_t>(prompt_tokens))
      return invalid("images",
                     "tokens [{}, {}) must be after the previous image and within the prompt of {} tokens",
                     image.first, image.first + std::int64_t{image.span()}, prompt_tokens);
    end = image.first + image.span();
  }
  return {};
}

std::vector<Hash128> media_identities(Hash128 identity, std::span<const MediaPart> images, int block_size) {
  std::vector<Hash128> identities;
  for (const MediaPart& image : images) {
    if (image.tokens == 0) continue;
    const int last = (image.first + image.span() - 1) / block_size;
    identities.resize(static_cast<std::size_t>(last) + 1, identity);
    for (int block = image.first / block_size; block <= last; ++block) {
      Hash128& own = identities[static_cast<std::size_t>(block)];
      const auto offset =
          static_cast<std::uint64_t>(std::int64_t{image.first} - std::int64_t{block} * block_size);
      own =
          hash_of(std::array<std::uint64_t, 6>{own.low, own.high, image.digest.low, image.digest.high, offset,
                                               2 * static_cast<std::uint64_t>(image.time) + image.continues});
    }
  }
  return identities;
}

std::vector<std::pair<int, int>> media_spans(std::span<const MediaPart> images) {
  std::vector<std::pair<int, int>> spans;
  for (const MediaPart& image : images) spans.emplace_back(image.first, image.first + image.span());
  return spans;
}

void append_grid_positions(std::span<const MediaPart> images, int first, int count, GridPositions& axes) {
  auto part = images.begin();
  int saved = 0;  // tokens so far minus positions so far, since an image takes fewer positions than tokens
  int begin = 0, behind = 0;  // position of the current video or image, and position of the text after it
  const auto enter = [&] {
    if (!part->continues) begin = part->first - saved;
    const int rows = part->tokens / part->columns;
    const int furthest = begin + std::max({part->columns, rows, part->time + 1});
    behind = part->continues ? std::max(behind, furthest) : furthest;
  };
  for (int token = first; token < first + count; ++token) {
    for (; part != images.end() && part->first + part->tokens <= token; ++part) {
      enter();
      saved = part->first + part->tokens - behind;
    }
    const bool inside = part != images.end() && part->first <= token;
    if (inside) enter();
    const int at = inside ? begin : token - saved, offset = inside ? token - part->first : 0;
    const int columns = inside ? part->columns : 1;
    axes[0].push_back(at + (inside ? part->time : 0));
    axes[1].push_back(at + offset / columns);
    axes[2].push_back(at + offset % columns);
  }
}

MediaPart source_of(std::span<const TokenId> text) {
  const auto bytes = std::as_bytes(text);
  return {.digest = hash_bytes(HashAlgorithm::sha256, bytes, 0),
          .bytes = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
          .columns = static_cast<int>(text.size())};
}

Hash128 with_prompt(Hash128 identity, std::span<const TokenId> prompt, std::span<const MediaPart> media) {
  const Hash128 ids = hash_bytes(HashAlgorithm::sha256, std::as_bytes(prompt), 0);
  std::vector<std::uint64_t> all{identity.low, identity.high, ids.low, ids.high};
  for (const MediaPart& part : media) {
    all.push_back(part.digest.low);
    all.push_back(part.digest.high);
  }
  return hash_of(all);
}

Hash128 with_sources(Hash128 identity, std::span<const MediaPart> images) {
  for (const MediaPart& image : images)
    if (image.tokens == 0)
      identity = hash_of(
          std::array<std::uint64_t, 4>{identity.low, identity.high, image.digest.low, image.digest.high});
  return identity;
}

}  // namespace octavo
