#include "serve/prompt_media.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <utility>

#include "base/base64.h"
#include "media/image.h"
#include "media/image_parts.h"
#include "media/pinned_tiles.h"
#include "media/sound.h"
#include "serve/image_overrides.h"
#include "serve/media_fetch.h"

namespace octavo {
namespace {

namespace json = boost::json;

// A string becomes one part.
json::array as_parts(json::value content) {
  if (content.is_array()) return std::move(content.get_array());
  return {json::object{{"type", "text"}, {"text", std::move(content)}}};
}

std::string as_text(const json::array& parts, std::string_view placeholder) {
  std::string media, text;
  for (const json::value& part : parts) {
    const json::object& fields = part.get_object();
    if (fields.at("type") != "text") {
      media += media.empty() ? "" : "\n";
      media += placeholder;
    } else {
      text += text.empty() ? "" : "\n";
      text += std::string_view(fields.at("text").get_string());
    }
  }
  return text.empty() ? media : fmt::format("{}\n{}", media, text);
}

// What follows "data:[type];base64,", or what has been fetched.
Result<std::string> bytes_of(const openai::ChatPrompt::Media& media) {
  if (media.bytes) return *media.bytes;
  const std::string_view url = media.url;
  if (is_address(url))
    return invalid("", "addresses are not fetched here: send a data: URL");
  const std::size_t comma = url.find(',');
  if (!url.starts_with("data:") || comma == std::string_view::npos ||
      !url.substr(0, comma).ends_with(";base64"))
    return invalid("", "must be a data: URL in base64, as data:image/png;base64,..");
  return decode_base64(url.substr(comma + 1));
}

// Images of other shapes are others, though they may have the same bytes.
Hash128 digest_of(const ImagePart& part) {
  const Hash128 pixels = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(part.pixels)), 0);
  const auto number = [](int n) { return static_cast<std::uint64_t>(n); };
  const ImagePart::Tiles& t = part.tiles;
  const std::array all{pixels.low,         pixels.high,          number(part.columns), number(t.tile_columns),
                       number(t.top),      number(t.left),       number(t.rows),       number(t.columns),
                       number(t.out_rows), number(t.out_columns)};
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(all)), 0);
}

// Where the grid of tokens of an image's tiles shows it.
ImagePart::Tiles tiles_of(const media::Image& image, const media::PartGrid& grid,
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

// One image or sound: its parts, and the text that stands for them.
struct ReadMedia {
  std::string text;
  std::vector<ImagePart> parts;
};

Error no_room(std::string_view what, std::int64_t tokens, const Service& service) {
  return invalid("", "the {} stands for {} tokens, the context of {} leaves no room for it", what, tokens,
                 service.options.rules.max_model_len)
      .error();
}

Result<ReadMedia> read_image(const Service& service, const media::ProcessorConfig& config,
                             const openai::ChatPrompt::Media& given, std::int64_t tokens_max) {
  const EngineInfo::ImageRule& rule = service.engine_info.image;
  TRY(const std::string file, bytes_of(given));
  TRY(media::Image image, media::decode_image(std::as_bytes(std::span(file))));
  TRY(const media::PartGrid grid, media::part_grid(image.width, image.height, config));
  const int columns = rule.size > 0 ? 0 : grid.width / rule.unit;
  const ImagePart::Tiles tiles =
      rule.tiled ? tiles_of(image, grid, std::get<media::PinnedTileRule>(config.rule), rule.tokens)
                 : ImagePart::Tiles();
  const std::int64_t tokens = rule.tiled
                                  ? rule.tokens + std::int64_t{tiles.out_rows} * (tiles.out_columns + 1)
                              : rule.size > 0 ? rule.tokens
                                              : std::int64_t{columns} * (grid.height / rule.unit);
  const std::int64_t all = (rule.tiled ? 1 : grid.parts()) * tokens;
  if (all > tokens_max) return std::unexpected(no_room("image", all, service));
  ReadMedia read{media::parts_text(grid, config, static_cast<int>(tokens)), {}};
  for (const media::Image& part : media::cut_parts(std::move(image), grid, config)) {
    read.parts.push_back({.tokens = static_cast<int>(tokens),
                          .pixels = {part.pixels.begin(), part.pixels.end()},
                          .columns = columns,
                          .row_breaks = rule.row_breaks,
                          .tiles = tiles});
    read.parts.back().digest = digest_of(read.parts.back());
  }
  return read;
}

Result<ReadMedia> read_sound(const Service& service, const openai::ChatPrompt::Media& given,
                             std::int64_t tokens_max) {
  const PromptSound& sound = *service.options.prompt_sound;
  const media::MelConfig& config = sound.log_mel.config();
  const EngineInfo::SoundRule& rule = service.engine_info.sound;
  TRY(const std::string file, bytes_of(given));
  TRY(const std::vector<float> samples,
      media::decode_sound(std::as_bytes(std::span(file)), media::MelConfig::kRate));
  if (std::ssize(samples) > config.samples())
    return invalid("", "the sound has {:.1f} seconds, the model hears {} at a time",
                   static_cast<double>(samples.size()) / media::MelConfig::kRate, config.seconds);
  // Frames that begin within the sound; a row of the encoder has two of them, a token some rows.
  const std::int64_t frames = (std::ssize(samples) + media::MelConfig::kHop - 1) / media::MelConfig::kHop;
  const std::int64_t rows = (frames + 1) / 2, tokens = rows / (rule.frames / 2 / rule.tokens);
  if (tokens < 1) return invalid("", "the sound is too short to be heard");
  if (tokens > tokens_max) return std::unexpected(no_room("sound", tokens, service));
  const std::vector<float> mel = sound.log_mel(samples);
  const auto bytes = std::as_bytes(std::span(mel));
  ImagePart part{.tokens = static_cast<int>(tokens),
                 .pixels = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                 .columns = static_cast<int>(rows)};
  part.digest = digest_of(part);
  ReadMedia read;
  for (std::int64_t i = 0; i < tokens; ++i) read.text += sound.token;
  read.parts.push_back(std::move(part));
  return read;
}

// What stands in texts for what the model takes; "": it takes none.
std::string_view image_token(const Service& service) {
  return service.options.images ? std::string_view(service.options.images->placeholder) : "";
}
std::string_view sound_token(const Service& service) {
  return service.options.prompt_sound ? std::string_view(service.options.prompt_sound->token) : "";
}

}  // namespace

Result<std::string> messages_for_template(const Service& service, const std::string& messages) {
  if (!service.options.images && !service.options.prompt_sound) return messages;
  const std::string_view token = service.options.images ? image_token(service) : sound_token(service);
  json::value all = json::parse(messages);
  for (json::value& message : all.get_array()) {
    json::value* content = message.get_object().if_contains("content");
    if (content == nullptr || content->is_null()) continue;
    if (service.options.template_takes_parts)
      *content = as_parts(std::move(*content));
    else if (content->is_array())
      *content = as_text(content->get_array(), token);
  }
  return json::serialize(all);
}

// A model takes images or sound, so that one token is looked for.
Result<std::vector<ImagePart>> read_media(const Service& service, const openai::ChatPrompt& prompt,
                                          std::string& text) {
  const std::span<const openai::ChatPrompt::Media> media = prompt.media;
  std::vector<ImagePart> parts;
  if (media.empty()) return parts;
  media::ProcessorConfig images = service.options.images.value_or(media::ProcessorConfig());
  if (!prompt.processor.empty()) {
    TRY(images, with_overrides(std::move(images), prompt.processor));
  }
  const bool sound = media.front().sound;
  const std::string_view token = sound ? sound_token(service) : image_token(service);
  std::vector<std::string_view> pieces;
  std::string_view rest = text;
  for (std::size_t at = rest.find(token); at != std::string_view::npos; at = rest.find(token)) {
    pieces.push_back(rest.substr(0, at));
    rest.remove_prefix(at + token.size());
  }
  if (pieces.size() != media.size())
    return invalid("messages", "the prompt has {} \"{}\", and there are {} {}: texts must not say it",
                   pieces.size(), token, media.size(), sound ? "sounds" : "images");
  std::int64_t room = service.options.rules.max_model_len;
  std::string expanded;
  for (std::size_t i = 0; i < media.size(); ++i) {
    auto read = sound ? read_sound(service, media[i], room) : read_image(service, images, media[i], room);
    if (!read) {
      read.error().field = media[i].field;
      return std::unexpected(std::move(read.error()));
    }
    expanded += pieces[i];
    expanded += read->text;
    for (ImagePart& part : read->parts) {
      room -= part.tokens;
      parts.push_back(std::move(part));
    }
  }
  expanded += rest;
  text = std::move(expanded);
  return parts;
}

Result<> place_media(const Service& service, std::span<const TokenId> ids, std::vector<ImagePart>& parts) {
  const bool sound = service.options.prompt_sound.has_value();
  const TokenId placeholder = sound ? service.engine_info.sound.token_id : service.engine_info.image.token_id;
  auto part = parts.begin();
  for (std::size_t i = 0; i < ids.size() && part != parts.end(); ++part) {
    while (i < ids.size() && ids[i] != placeholder) ++i;
    part->first = static_cast<int>(i);
    for (int k = 0; k < part->tokens; ++k, ++i) {
      if (part->row_breaks && k > 0 && k % part->columns == 0) ++i;
      if (i >= ids.size() || ids[i] != placeholder)
        return invalid("messages", "the tokens of {} are not next to each other in the prompt",
                       sound ? "a sound" : "an image");
    }
  }
  if (part == parts.end()) return {};
  return failure(ErrorCode::internal, "\"{}\" is not a token of its own: id {} is not in the prompt",
                 sound ? service.options.prompt_sound->token : service.options.images->token, placeholder);
}

}  // namespace octavo
