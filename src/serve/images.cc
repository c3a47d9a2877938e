#include "serve/images.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "media/base64.h"
#include "media/image.h"
#include "media/image_parts.h"

namespace octavo {
namespace {

namespace json = boost::json;

// A string becomes one part.
json::array as_parts(json::value content) {
  if (content.is_array()) return std::move(content.get_array());
  return {json::object{{"type", "text"}, {"text", std::move(content)}}};
}

std::string as_text(const json::array& parts, std::string_view placeholder) {
  std::string images, text;
  for (const json::value& part : parts) {
    const json::object& fields = part.get_object();
    if (fields.at("type") == "image") {
      images += images.empty() ? "" : "\n";
      images += placeholder;
    } else {
      text += text.empty() ? "" : "\n";
      text += std::string_view(fields.at("text").get_string());
    }
  }
  return text.empty() ? images : fmt::format("{}\n{}", images, text);
}

// What follows "data:[type];base64,".
Result<std::string> bytes_of(std::string_view url) {
  if (url.starts_with("http://") || url.starts_with("https://") || url.starts_with("file:"))
    return failure(ErrorCode::invalid_argument, "images are not fetched: send a data: URL");
  const std::size_t comma = url.find(',');
  if (!url.starts_with("data:") || comma == std::string_view::npos ||
      !url.substr(0, comma).ends_with(";base64"))
    return invalid("", "must be a data: URL in base64, as data:image/png;base64,..");
  return media::decode_base64(url.substr(comma + 1));
}

// Images of other shapes are others, though they may have the same bytes.
Hash128 digest_of(const ImagePart& part) {
  const Hash128 pixels = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(part.pixels)), 0);
  const std::array<std::uint64_t, 3> all{pixels.low, pixels.high, static_cast<std::uint64_t>(part.columns)};
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(all)), 0);
}

// Reads one image: its parts, and the text that stands for them.
struct ReadImage {
  std::string text;
  std::vector<ImagePart> parts;
};
Result<ReadImage> read_image(const Service& service, const std::string& url, std::int64_t tokens_max) {
  const media::ProcessorConfig& config = *service.options.images;
  const EngineInfo::ImageRule& rule = service.engine_info.image;
  TRY(const std::string file, bytes_of(url));
  TRY(media::Image image, media::decode_image(std::as_bytes(std::span(file))));
  TRY(const media::PartGrid grid, media::part_grid(image.width, image.height, config));
  const int columns = rule.size > 0 ? 0 : grid.width / rule.unit;
  const std::int64_t tokens = rule.size > 0 ? rule.tokens : std::int64_t{columns} * (grid.height / rule.unit);
  if (grid.parts() * tokens > tokens_max)
    return invalid("", "the image stands for {} tokens, the context of {} leaves no room for it",
                   grid.parts() * tokens, service.options.rules.max_model_len);
  ReadImage read{media::parts_text(grid, config, static_cast<int>(tokens)), {}};
  for (const media::Image& part : media::cut_parts(std::move(image), grid, config)) {
    read.parts.push_back({.tokens = static_cast<int>(tokens),
                          .pixels = {part.pixels.begin(), part.pixels.end()},
                          .columns = columns});
    read.parts.back().digest = digest_of(read.parts.back());
  }
  return read;
}

}  // namespace

Result<std::string> messages_for_template(const Service& service, const std::string& messages) {
  if (!service.options.images) return messages;
  json::value all = json::parse(messages);
  for (json::value& message : all.get_array()) {
    json::value* content = message.get_object().if_contains("content");
    if (content == nullptr || content->is_null()) continue;
    if (service.options.template_takes_parts)
      *content = as_parts(std::move(*content));
    else if (content->is_array())
      *content = as_text(content->get_array(), service.options.images->placeholder);
  }
  return json::serialize(all);
}

Result<std::vector<ImagePart>> read_images(const Service& service,
                                           std::span<const openai::ChatPrompt::ImageUrl> images,
                                           std::string& text) {
  const std::string& token = service.options.images->placeholder;
  std::vector<std::string_view> pieces;
  std::string_view rest = text;
  for (std::size_t at = rest.find(token); at != std::string_view::npos; at = rest.find(token)) {
    pieces.push_back(rest.substr(0, at));
    rest.remove_prefix(at + token.size());
  }
  if (pieces.size() != images.size())
    return invalid("messages", "the prompt has {} \"{}\", and there are {} images: texts must not say it",
                   pieces.size(), token, images.size());
  std::int64_t room = service.options.rules.max_model_len;
  std::string expanded;
  std::vector<ImagePart> parts;
  for (std::size_t i = 0; i < images.size(); ++i) {
    auto read = read_image(service, images[i].url, room);
    if (!read) {
      read.error().field = images[i].field;
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

Result<> place_images(const Service& service, std::span<const TokenId> ids, std::vector<ImagePart>& parts) {
  const TokenId placeholder = service.engine_info.image.token_id;
  auto part = parts.begin();
  for (std::size_t i = 0; i < ids.size() && part != parts.end(); ++part) {
    while (i < ids.size() && ids[i] != placeholder) ++i;
    part->first = static_cast<int>(i);
    for (int k = 0; k < part->tokens; ++k, ++i)
      if (i == ids.size() || ids[i] != placeholder)
        return invalid("messages", "the tokens of an image are not next to each other in the prompt");
  }
  if (part == parts.end()) return {};
  return failure(ErrorCode::internal, "\"{}\" is not a token of its own: id {} is not in the prompt",
                 service.options.images->token, placeholder);
}

}  // namespace octavo
