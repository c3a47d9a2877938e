// Fixture for tests of images: the whole server with FakeEngine, the tokenizer and the images of
// tests/data/vision.
#pragma once

#include <string>
#include <utility>

#include "base/base64.h"
#include "media/testing/golden.h"
#include "serve/serve_fixture.h"

namespace octavo {

class ImagesTest : public ServeTest {
 protected:
  // parts: the chat template reads parts of contents. task: an embedding model returns the number of tokens
  // and of media parts; a cross-encoder returns the number of media parts.
  void serve_images(bool parts = true, int context = 400, Task task = Task::generate) {
    tokenizer_ = Tokenizer::load(golden_.directory).value();
    if (parts)
      template_ =
          ChatTemplate::compile(media::file_bytes(golden_.directory + "/chat_template.jinja"), {}).value();
    const auto script = [task](const Request& request, int) {
      const auto tokens = static_cast<float>(request.prompt.size());
      const auto media = static_cast<float>(request.media.size());
      if (task == Task::classify) return Script{.pooled = {media}};
      return task == Task::embed ? Script{.pooled = {tokens, media}} : Script{.tokens = {40, 41, 257}};
    };
    serve(script, [&](ServeOptions& options, http::ServerOptions&) {
      if (task != Task::generate) {
        engine_->described.max_model_len = context;
        engine_->described.tasks = {.default_task = task, .pooled_size = task == Task::embed ? 2 : 1};
        options.pooling.score_template = task == Task::classify;
      }
      engine_->described.image = {.size = 32, .tokens = 4, .token_id = 259};
      options.rules.limits.vocab_size = 288;
      options.rules.max_model_len = context;
      options.rules.images_max = 2;
      options.media.images = media::ProcessorConfig{
          .rule = media::TileRule{.longest_edge = 64, .tile_size = 32}, .token = token_};
      options.eos_ids = {257};
    });
  }

  std::string url_of(const std::string& picture) const {
    return "data:image/png;base64," + encode_base64(media::file_bytes(golden_.directory + "/" + picture));
  }
  static json::object image(const std::string& url) {
    return {{"type", "image_url"}, {"image_url", {{"url", url}, {"detail", "auto"}}}};
  }
  static json::object text(const std::string& words) { return {{"type", "text"}, {"text", words}}; }
  static std::string chat(json::array messages) {
    return json::serialize(json::object{{"model", "demo"}, {"messages", std::move(messages)}});
  }
  static json::object user(json::value content) {
    return {{"role", "user"}, {"content", std::move(content)}};
  }

  // Returns the status and the error for a chat with one image at this URL.
  std::pair<int, json::object> error_of(const std::string& url) {
    const http::Response response =
        post("/v1/chat/completions", chat({user(json::array{text("Look:"), image(url)})}));
    return {response.status, json::parse(response.body).as_object().at("error").as_object()};
  }

  const media::VisionGolden golden_{"idefics3"};
  std::string token_ = "<image>";  // text of each token of an image
};

}  // namespace octavo
