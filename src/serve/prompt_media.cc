#include "serve/prompt_media.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <utility>

#include "base/base64.h"
#include "base/exact_json.h"
#include "media/image.h"
#include "media/image_parts.h"
#include "media/padded_tiles.h"
#include "media/pinned_tiles.h"
#include "media/sound.h"
#include "media/split_tiles.h"
#include "serve/image_overrides.h"
#include "serve/media_fetch.h"
#include "serve/media_io.h"
#include "serve/read_media.h"

namespace octavo {
namespace {

namespace json = boost::json;
using openai::MediaKind;

// Returns the grid of tiles, and the region of the token grid that shows the image (the rest is padding).
MediaPart::Tiles tiles_of(const media::Image& image, const media::PartGrid& grid,
                          const media::PinnedTileRule& rule, int tokens_of_tile) {
  const int side = static_cast<int>(std::lround(std::sqrt(tokens_of_tile)));
  const media::TokenGrid kept = media::token_grid(image.width, image.height, grid, side, rule.tiles_most);
  return {.tile_rows = grid.rows,
          .tile_columns = grid.columns,
          .top = kept.top,
          .left = kept.left,
          .rows = kept.rows,
          .columns = kept.columns,
          .out_rows = kept.out_rows,
          .out_columns = kept.out_columns};
}

// The same for models in which the image is at the upper left corner of the tiles, and padding is at the
// right and bottom edges.
MediaPart::Tiles tiles_of(const media::PartGrid& grid, const media::PaddedTileRule& rule, int patches_of_token) {
  const media::PatchGrid seen = media::seen_patches(grid, rule);
  const auto tokens = [&](int patches) { return (patches + patches_of_token - 1) / patches_of_token; };
  return {.tile_rows = grid.rows,
          .tile_columns = grid.columns,
          .rows = tokens(seen.rows),
          .columns = tokens(seen.columns),
          .out_rows = tokens(seen.rows),
          .out_columns = tokens(seen.columns),
          .patch_rows = seen.rows,
          .patch_columns = seen.columns};
}

MediaPart::Tiles tiles_of(const media::Image& image, const media::PartGrid& grid, const media::ProcessorConfig& config,
                          const EngineInfo::ImageRule& engine) {
  if (const auto* rule = std::get_if<media::PinnedTileRule>(&config.rule))
    return tiles_of(image, grid, *rule, engine.tokens);
  if (const auto* rule = std::get_if<media::PaddedTileRule>(&config.rule)) return tiles_of(grid, *rule, engine.whole_last);
  return {};
}

Result<ReadMedia> read_image(const Service& service, const media::ProcessorConfig& config,
                             const openai::ChatPrompt::Media& given, std::int64_t tokens_max) {
  const EngineInfo::ImageRule& rule = service.engine_info.image;
  TRY(const std::string file, bytes_of(given));
  TRY(media::Image image,
      media::decode_image(std::as_bytes(std::span(file)), media::kImagePixelsMax, config.background));
  TRY(const media::PartGrid grid, media::part_grid(image.width, image.height, config));
  const int columns = rule.size > 0 ? 0 : grid.width / rule.unit;
  const MediaPart::Tiles tiles = tiles_of(image, grid, config, rule);
  const std::int64_t tokens = rule.tiled ? tokens_of(tiles, rule)
                              : rule.size > 0
                                  ? rule.tokens
                                  : std::int64_t{columns} * (grid.height / rule.unit) + rule.marks;
  const auto* const split = std::get_if<media::SplitTileRule>(&config.rule);
  const std::int64_t all =
      split ? media::split_tile_tokens(grid, *split) : (rule.tiled ? 1 : grid.parts()) * tokens;
  if (all > tokens_max) return std::unexpected(no_room("image", all, service));
  ReadMedia read{media::parts_text(grid, config, static_cast<int>(tokens)), {}};
  for (const media::Image& part : media::cut_parts(std::move(image), grid, config)) {
    const int across = split ? part.width / rule.unit : columns;
    read.parts.push_back({.tokens = split ? across * (part.height / rule.unit) : static_cast<int>(tokens),
                          .bytes = {part.pixels.begin(), part.pixels.end()},
                          .columns = across,
                          .row_breaks = rule.row_breaks,
                          .tiles = tiles});
    read.parts.back().digest = digest_of(read.parts.back());
  }
  return read;
}

Result<ReadMedia> read_sound(const Service& service, const openai::ChatPrompt::Media& given,
                             std::int64_t tokens_max) {
  const PromptSound& sound = *service.options.media.prompt_sound;
  const media::MelConfig& config = sound.log_mel.config();
  const EngineInfo::SoundRule& rule = service.engine_info.sound;
  TRY(const std::string file, bytes_of(given));
  TRY(const std::vector<float> samples,
      media::decode_sound(std::as_bytes(std::span(file)), media::MelConfig::kRate));
  const int windows =
      rule.whole ? static_cast<int>((std::ssize(samples) + config.samples() - 1) / config.samples()) : 1;
  if (!rule.whole && std::ssize(samples) > config.samples())
    return invalid("", "the sound has {:.1f} seconds, but the model accepts at most {}: send a shorter sound",
                   static_cast<double>(samples.size()) / media::MelConfig::kRate, config.seconds);
  // Number of frames that begin within the audio. The encoder makes one row from two frames, and one token
  // from several rows.
  const std::int64_t frames = (std::ssize(samples) + media::MelConfig::kHop - 1) / media::MelConfig::kHop;
  const auto rows_of = [](std::int64_t seen) { return (seen + 1) / 2; };
  const auto tokens_of_rows = [&](std::int64_t rows) { return rows / (rule.frames / 2 / rule.tokens); };
  const std::int64_t rows = rule.whole ? rule.frames / 2 : rows_of(frames);
  const std::int64_t tokens = tokens_of_rows(rows);
  // tokens of the last window
  const std::int64_t last =
      rule.trimmed ? tokens_of_rows(rows_of(frames - (windows - 1) * rule.frames)) : tokens;
  const std::int64_t all = (windows - 1) * tokens + last;
  if (last < 1 || windows < 1) return invalid("", "the sound is too short for the model");
  if (all > tokens_max) return std::unexpected(no_room("sound", all, service));
  const std::vector<float> mel = sound.log_mel(samples, windows);
  const std::string_view bytes(reinterpret_cast<const char*>(mel.data()), mel.size() * sizeof(float));
  const std::size_t size = bytes.size() / static_cast<std::size_t>(windows);
  ReadMedia read;
  for (std::int64_t i = 0; i < all; ++i) read.text += sound.token;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    read.parts.push_back({.tokens = static_cast<int>(at + size < bytes.size() ? tokens : last),
                          .bytes = std::string(bytes.substr(at, size)),
                          .columns = static_cast<int>(rows)});
    read.parts.back().digest = digest_of(read.parts.back());
  }
  return read;
}

Result<ReadMedia> read(const Service& service, const media::ProcessorConfig& images,
                       const openai::ChatPrompt::Media& given, std::int64_t tokens_max) {
  switch (given.kind) {
    case MediaKind::image:
      return read_image(service, images, given, tokens_max);
    case MediaKind::video:
      return read_video(service, images, given, tokens_max);
    case MediaKind::sound:
      return read_sound(service, given, tokens_max);
  }
  return failure(ErrorCode::internal, "a part of a message has an unknown type of media");
}

// A text split at its media placeholders: the text before each placeholder, and the text after the last
// one.
struct Pieces {
  std::vector<std::string_view> texts;
  std::vector<MediaKind> kinds;
};

// Position and size of the first placeholder in a text; npos: the text has none.
struct FoundToken {
  std::size_t at = std::string_view::npos, size = 0;
};
// Templates of Phi-3 models number the images: `<|image_1|>` is also the placeholder `<|image|>`.
FoundToken find_media_token(std::string_view text, std::string_view token) {
  if (token.empty()) return {};
  FoundToken found{text.find(token), token.size()};
  constexpr std::string_view kEnd = "|>";
  if (!token.ends_with(kEnd)) return found;
  const std::string stem = std::string(token.substr(0, token.size() - kEnd.size())) + '_';
  for (std::size_t at = text.find(stem); at < found.at; at = text.find(stem, at + 1)) {
    const std::size_t end = text.find_first_not_of("0123456789", at + stem.size());
    const bool numbered = end != std::string_view::npos && end > at + stem.size();
    if (numbered && text.substr(end).starts_with(kEnd)) return {at, end + kEnd.size() - at};
  }
  return found;
}

Pieces cut_at_tokens(const Service& service, std::string_view text) {
  Pieces pieces;
  for (;;) {
    std::size_t first = std::string_view::npos, length = 0;
    MediaKind found{};
    for (const MediaKind kind : {MediaKind::image, MediaKind::video, MediaKind::sound}) {
      const FoundToken token = find_media_token(text, token_of(service, kind));
      if (token.at >= first) continue;
      first = token.at;
      length = token.size;
      found = kind;
    }
    pieces.texts.push_back(text.substr(0, first));
    if (first == std::string_view::npos) return pieces;
    pieces.kinds.push_back(found);
    text.remove_prefix(first + length);
  }
}

std::string_view name_of(MediaKind kind) {
  return kind == MediaKind::image ? "images" : kind == MediaKind::video ? "videos" : "sounds";
}

// Returns the text that is in the prompt for each token of an image, a video or a sound.
std::string_view written_token(const Service& service, MediaKind kind) {
  return kind == MediaKind::image ? std::string_view(service.options.media.images->token)
                                  : token_of(service, kind);
}

Result<> check_kinds(const Service& service, std::span<const openai::ChatPrompt::Media> media,
                     std::span<const MediaKind> found) {
  for (const MediaKind kind : {MediaKind::image, MediaKind::video, MediaKind::sound}) {
    const auto tokens = std::ranges::count(found, kind), given = std::ranges::count(media, kind, &openai::ChatPrompt::Media::kind);
    if (tokens != given)
      return invalid("messages",
                     "the prompt has {} \"{}\", but the request has {} {}: texts must not contain this token",
                     tokens, token_of(service, kind), given, name_of(kind));
  }
  if (std::ranges::equal(found, media, {}, {}, &openai::ChatPrompt::Media::kind)) return {};
  return invalid(
      "messages",
      "the chat template changes the order of the images and videos: send only one of the two types");
}

// Qwen3-VL's template writes markers once around a video's placeholder. But each part of the video must have
// markers (VideoParts), so the template's markers are removed.
void drop_marks(const media::VideoRule& rule, std::string_view& before, std::string_view& behind) {
  if (!rule.stamped || !before.ends_with(rule.before) || !behind.starts_with(rule.after)) return;
  before.remove_suffix(rule.before.size());
  behind.remove_prefix(rule.after.size());
}

}  // namespace

Result<std::string> bytes_of(const openai::ChatPrompt::Media& media) {
  if (media.bytes) return *media.bytes;
  const std::string_view url = media.url;
  if (is_address(url)) return invalid("", "URLs are not supported here: send a data: URL");
  const std::size_t comma = url.find(',');
  if (!url.starts_with("data:") || comma == std::string_view::npos ||
      !url.substr(0, comma).ends_with(";base64"))
    return invalid("", "must be an http(s) URL, or a data: URL in base64 such as data:image/png;base64,..");
  return decode_base64(url.substr(comma + 1));
}

Hash128 digest_of(const MediaPart& part) {
  const Hash128 pixels = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(part.bytes)), 0);
  const auto number = [](int n) { return static_cast<std::uint64_t>(n); };
  const MediaPart::Tiles& t = part.tiles;
  const std::array all{pixels.low,         pixels.high,          number(part.columns), number(t.tile_columns),
                       number(t.top),      number(t.left),       number(t.rows),       number(t.columns),
                       number(t.out_rows), number(t.out_columns), number(t.patch_rows), number(t.patch_columns),
                       number(part.frames)};
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(all)), 0);
}

Error no_room(std::string_view what, std::int64_t tokens, const Service& service) {
  return invalid("", "the {} needs {} tokens, which is more than the context of {} tokens allows", what,
                 tokens, service.options.rules.max_model_len)
      .error();
}

std::string_view token_of(const Service& service, MediaKind kind) {
  const std::optional<media::ProcessorConfig>& images = service.options.media.images;
  switch (kind) {
    case MediaKind::image:
      return images ? std::string_view(images->placeholder) : "";
    case MediaKind::video:
      return images && images->video ? std::string_view(images->video->token) : "";
    case MediaKind::sound:
      return service.options.media.prompt_sound ? std::string_view(service.options.media.prompt_sound->token)
                                                : "";
  }
  return "";
}

std::string adapter_of(const Service& service, std::span<const openai::ChatPrompt::Media> media) {
  constexpr std::pair<MediaKind, const char*> kNames[] = {
      {MediaKind::image, "image"}, {MediaKind::video, "video"}, {MediaKind::sound, "audio"}};
  for (const auto& [kind, name] : kNames)
    if (service.options.media.adapters.contains(name) &&
        std::ranges::find(media, kind, &openai::ChatPrompt::Media::kind) != media.end())
      return name;
  return "";
}

Result<std::vector<MediaPart>> read_media(const Service& service, const openai::ChatPrompt& prompt,
                                          std::string& text) {
  const std::span<const openai::ChatPrompt::Media> media = prompt.media;
  std::vector<MediaPart> parts;
  if (media.empty()) return parts;
  media::ProcessorConfig images = service.options.media.images.value_or(media::ProcessorConfig());
  apply(prompt.media_io, images);
  if (!prompt.processor.empty()) {
    TRY(images, with_overrides(std::move(images), prompt.processor));
  }
  if (auto* tiles = std::get_if<media::RatioTileRule>(&images.rule); tiles != nullptr && media.size() > 1)
    tiles->twice = false;
  Pieces pieces = cut_at_tokens(service, text);
  TRY_VOID(check_kinds(service, media, pieces.kinds));
  std::int64_t room = service.options.rules.max_model_len;
  std::string expanded;
  for (std::size_t i = 0; i < media.size(); ++i) {
    auto one = read(service, images, media[i], room);
    if (!one) {
      one.error().field = media[i].field;
      return std::unexpected(std::move(one.error()));
    }
    if (media[i].kind == MediaKind::video) drop_marks(*images.video, pieces.texts[i], pieces.texts[i + 1]);
    expanded += pieces.texts[i];
    expanded += one->text;
    for (MediaPart& part : one->parts) {
      room -= part.tokens;
      parts.push_back(std::move(part));
    }
  }
  expanded += pieces.texts.back();
  text = std::move(expanded);
  return parts;
}

Result<> place_media(const Service& service, std::span<const TokenId> ids, std::vector<MediaPart>& parts) {
  const bool sound = service.options.media.prompt_sound.has_value();
  const EngineInfo::ImageRule& rule = service.engine_info.image;
  const auto kind_of = [&](const MediaPart& part) {
    return sound ? MediaKind::sound : part.frames > 0 ? MediaKind::video : MediaKind::image;
  };
  const auto id_of = [&](MediaKind kind) {
    return kind == MediaKind::sound ? service.engine_info.sound.token_id : kind == MediaKind::video ? rule.video_token_id : rule.token_id;
  };
  std::size_t i = 0;
  for (MediaPart& part : parts) {
    const MediaKind kind = kind_of(part);
    const TokenId placeholder = id_of(kind);
    if (std::ranges::find(ids, placeholder) == ids.end())
      return failure(
          ErrorCode::internal,
          "the tokenizer has no token \"{}\": the prompt lacks its id {}, which the model replaces "
          "by {}; add the token to the tokenizer's files",
          written_token(service, kind), placeholder, name_of(kind));
    while (i < ids.size() && ids[i] != placeholder) ++i;
    part.first = static_cast<int>(i);
    for (int k = 0; k < part.tokens; ++k, ++i) {
      if (part.row_breaks && k > 0 && k % part.columns == 0) ++i;
      if (i >= ids.size() || ids[i] != placeholder)
        return invalid("messages", "the tokens of {} are not next to each other in the prompt",
                       kind == MediaKind::sound ? "a sound" : kind == MediaKind::video ? "a video" : "an image");
    }
  }
  return {};
}

}  // namespace octavo
