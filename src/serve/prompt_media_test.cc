// Tests images in chats over HTTP. The engine's input must equal the output of transformers' processor
// (tests/data/vision).
#include "serve/prompt_media.h"

#include <gmock/gmock.h>

#include "base/base64.h"
#include "serve/images_fixture.h"

namespace octavo {
namespace {

using media::VisionGolden;
using testing::HasSubstr;

TEST_F(ImagesTest, ReachTheEngineAsTransformersPreparesThem) {
  serve_images();
  const std::string body =
      chat({user(json::array{image(url_of("rgb.png")), text("What is in this picture?")}),
            json::object{{"role", "assistant"}, {"content", "Waves."}},
            user(json::array{text("And here?"), image(url_of("photo.jpg"))})});
  const json::object answer = reply("/v1/chat/completions", body);
  const Request& request = engine_->last_request;
  EXPECT_EQ(request.prompt, golden_.values<TokenId>("ids"));
  EXPECT_EQ(answer.at("usage").at("prompt_tokens").as_int64(), std::ssize(request.prompt));

  std::vector<media::Image> tiles = golden_.tiles("tiles.rgb.png");
  for (media::Image& tile : golden_.tiles("tiles.photo.jpg")) tiles.push_back(std::move(tile));
  ASSERT_EQ(request.media.size(), tiles.size());
  EXPECT_TRUE(check_media(request.media, request.prompt.size(), engine_->described).has_value());
  for (std::size_t i = 0; i < 5; ++i)  // compares the pixels only for the lossless image
    EXPECT_EQ(request.media[i].bytes, std::string(tiles[i].pixels.begin(), tiles[i].pixels.end())) << i;
  for (const MediaPart& part : request.media)
    for (int k = 0; k < 4; ++k) EXPECT_EQ(request.prompt[static_cast<std::size_t>(part.first + k)], 259);
  EXPECT_NE(request.media[0].digest, request.media[1].digest);

  EXPECT_EQ(reply("/tokenize", body).at("count").as_int64(), std::ssize(request.prompt));
}

TEST_F(ImagesTest, ARequestMayHaveThemSmaller) {
  serve_images();
  const auto parts = [&](const std::string& kwargs) {
    json::object body = json::parse(chat({user(json::array{image(url_of("rgb.png"))})})).as_object();
    body["mm_processor_kwargs"] = json::parse(kwargs);
    const http::Response response = post("/v1/chat/completions", json::serialize(body));
    return response.status == 200 ? std::to_string(engine_->last_request.media.size()) : response.body;
  };
  EXPECT_EQ(parts("{}"), "5");
  EXPECT_EQ(parts(R"({"do_image_splitting": false})"), "1");
  EXPECT_EQ(parts(R"({"size": {"longest_edge": 32}})"), "1");
  EXPECT_THAT(parts(R"({"size": {"longest_edge": 65}})"), HasSubstr("mm_processor_kwargs.size.longest_edge"));
  EXPECT_THAT(parts(R"({"max_pixels": 65})"), HasSubstr("mm_processor_kwargs.max_pixels"));
  EXPECT_THAT(parts("7"), HasSubstr("mm_processor_kwargs"));
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a","mm_processor_kwargs":{"max_pixels":65}})").status, 400);
}

TEST_F(ImagesTest, ARequestMaySetTheBackground) {
  serve_images();
  const auto pixels = [&](const std::string& picture, const std::string& options) {
    json::object body = json::parse(chat({user(json::array{image(url_of(picture))})})).as_object();
    body["media_io_kwargs"] = json::parse(options);
    const http::Response response = post("/v1/chat/completions", json::serialize(body));
    return response.status == 200 ? engine_->last_request.media[0].bytes : response.body;
  };
  const std::string black = R"({"image": {"rgba_background_color": [0, 0, 0]}})";
  EXPECT_NE(pixels("alpha.png", black), pixels("alpha.png", "{}"));
  EXPECT_EQ(pixels("alpha.png", R"({"image": {"image_mode": "RGB", "max_pixels": 512}, "other": {}})"),
            pixels("alpha.png", "{}"));
}

TEST_F(ImagesTest, AUuidStandsForAnEarlierImage) {
  serve_images();
  const auto ask = [&](json::object part) {
    const http::Response response = post("/v1/chat/completions", chat({user(json::array{std::move(part)})}));
    return response.status == 200 ? engine_->last_request.media[0].bytes : response.body;
  };
  json::object whole = image(url_of("rgb.png"));
  whole["uuid"] = "waves";
  const json::object name{{"type", "image_url"}, {"image_url", json::object()}, {"uuid", "waves"}};
  EXPECT_THAT(ask(name), HasSubstr("Cache miss for image at index 0 but data is not provided"));
  const std::string pixels = ask(whole);
  EXPECT_EQ(ask(name), pixels);
  EXPECT_THAT(ask({{"type", "image_url"}, {"image_url", json::object()}, {"uuid", std::string(257, 'x')}}),
              HasSubstr("messages[0].content[0].uuid: must have at most 256 bytes"));
}

TEST_F(ImagesTest, OllamasImagesMayHaveLineBreaksOrBeUrls) {
  serve_images();
  const std::string url = url_of("rgb.png");
  const std::string data = url.substr(url.find(',') + 1);
  std::string lines;
  for (std::size_t at = 0; at < data.size(); at += 76) lines += data.substr(at, 76) + "\r\n";
  std::vector<std::string> pixels;
  for (const std::string& image : {data, lines, url}) {
    json::object message = user("Look");
    message["images"] = json::array{json::value(image)};
    json::object body{{"model", "demo"}, {"stream", false}};
    body["messages"] = json::array{json::value(message)};
    const http::Response response = post("/api/chat", json::serialize(body));
    ASSERT_EQ(response.status, 200) << response.body;
    pixels.push_back(engine_->last_request.media.at(0).bytes);
    EXPECT_EQ(pixels.back(), pixels.front());
  }
}

TEST_F(ImagesTest, ABeamSearchKeepsTheImages) {
  serve_images();
  json::object body = json::parse(chat({user(json::array{image(url_of("rgb.png"))})})).as_object();
  for (const auto& [field, value] : json::object{{"use_beam_search", true}, {"n", 2}, {"max_tokens", 3}})
    body[field] = value;
  const json::object answer = reply("/v1/chat/completions", json::serialize(body));
  EXPECT_EQ(answer.at("choices").as_array().size(), 2U);
  const Request& request = engine_->last_request;  // of the last step
  EXPECT_EQ(request.media.size(), 5U);
  EXPECT_EQ(std::ssize(request.prompt), answer.at("usage").at("prompt_tokens").as_int64() + 2);
  EXPECT_TRUE(check_media(request.media, request.prompt.size(), engine_->described).has_value());
}

// Models for which all tiles of an image form one MediaPart.
class TiledImageTest : public ImagesTest,
                       public testing::WithParamInterface<std::pair<const char*, media::PinnedTileRule>> {};

TEST_P(TiledImageTest, ReachesTheEngineAsTransformersPreparesIt) {
  const auto& [name, rule] = GetParam();
  const VisionGolden golden(name);
  tokenizer_ = Tokenizer::load(golden.directory).value();
  template_ = ChatTemplate::compile(media::file_bytes(golden.directory + "/chat_template.jinja"), {}).value();
  serve([](const Request&, int) { return Script{.tokens = {40, 41, 257}}; },
        [&](ServeOptions& options, http::ServerOptions&) {
          engine_->described.image = {.size = rule.tile_size, .tokens = 16, .token_id = 259, .tiled = true};
          options.rules.limits.vocab_size = 288;
          options.rules.max_model_len = 400;
          options.rules.images_max = 2;
          options.media.images = media::ProcessorConfig{.rule = rule, .filter = media::Filter::bicubic};
          options.eos_ids = {257};
        });
  reply("/v1/chat/completions",
        chat({user(json::array{image(url_of("rgb.png")), text("What is in this picture?")}),
              json::object{{"role", "assistant"}, {"content", "Waves."}},
              user(json::array{text("And here?"), image(url_of("photo.jpg"))})}));
  const Request& request = engine_->last_request;
  EXPECT_EQ(request.prompt, golden.values<TokenId>("ids"));
  ASSERT_EQ(request.media.size(), 2U);
  EXPECT_TRUE(check_media(request.media, request.prompt.size(), engine_->described).has_value());
  const std::vector<std::uint8_t> pixels = golden.values<std::uint8_t>("tiles.rgb.png");
  EXPECT_EQ(request.media[0].bytes, std::string(pixels.begin(), pixels.end()));
}

media::PinnedTileRule onevision_rule() {
  media::PinnedTileRule rule{.tile_size = 30, .tiles_most = 2};
  for (int rows = 1; rows <= 3; ++rows)
    for (int columns = 1; columns <= 3; ++columns) rule.grids.push_back({rows, columns});
  return rule;
}
INSTANTIATE_TEST_SUITE_P(Families, TiledImageTest,
                         testing::Values(std::pair("llava_next",
                                                   media::PinnedTileRule{
                                                       .tile_size = 32,
                                                       .grids = {{1, 2}, {2, 1}, {2, 2}, {3, 1}, {1, 3}}}),
                                         std::pair("llava_onevision", onevision_rule())),
                         [](const auto& test) { return std::string(test.param.first); });

// Models for which each tile of an image is a part.
class PartsTest : public ImagesTest,
                  public testing::WithParamInterface<std::pair<const char*, media::ProcessorConfig>> {};

TEST_P(PartsTest, PromptsAreThoseOfTransformers) {
  const auto& [name, config] = GetParam();
  const VisionGolden golden(name);
  tokenizer_ = Tokenizer::load(golden.directory).value();
  template_ = ChatTemplate::compile(media::file_bytes(golden.directory + "/chat_template.jinja"), {}).value();
  serve([](const Request&, int) { return Script{.tokens = {40, 41, 257}}; },
        [&](ServeOptions& options, http::ServerOptions&) {
          engine_->described.image = {.size = 32, .tokens = 4, .token_id = 259};
          options.rules.limits.vocab_size = 288;
          options.rules.max_model_len = 400;
          options.rules.images_max = 2;
          options.media.images = config;
          options.eos_ids = {257};
        });
  reply("/v1/chat/completions",
        chat({user(json::array{image(url_of("rgb.png")), text("What is in this picture?")}),
              json::object{{"role", "assistant"}, {"content", "Waves."}},
              user(json::array{text("And here?"), image(url_of("photo.jpg"))})}));
  EXPECT_EQ(engine_->last_request.prompt, golden.values<TokenId>("ids"));
}

INSTANTIATE_TEST_SUITE_P(
    Families, PartsTest,
    testing::Values(std::pair("internvl_chat",
                              media::ProcessorConfig{
                                  .rule = media::RatioTileRule{.tile_size = 32, .tiles_max = 4},
                                  .filter = media::Filter::bicubic,
                                  .placeholder = "<IMG_CONTEXT>",
                                  .token = "<IMG_CONTEXT>",
                                  .before = "<img>",
                                  .after = "</img>"}),
                    std::pair("cohere2_vision",
                              media::ProcessorConfig{
                                  .rule = media::RatioTileRule{.tile_size = 32, .tiles_max = 4, .fits = true},
                                  .filter = media::Filter::bicubic,
                                  .placeholder = "<|IMG_PATCH|>",
                                  .token = "<|IMG_PATCH|>",
                                  .before = "<|START_OF_IMG|>",
                                  .after = "<|END_OF_IMG|>",
                                  .row_break = "<|IMG_LINE_BREAK|>"})),
    [](const auto& test) { return std::string(test.param.first); });

TEST_F(ImagesTest, StandInFrontOfTheTextWhereTemplatesTakeStrings) {
  serve_images(false);
  reply("/v1/chat/completions",
        chat({user(json::array{text("One"), image(url_of("rgb.png")), text("two")}), user("Three")}));
  const std::string prompt = tokenizer_.decode(engine_->last_request.prompt, false).value();
  EXPECT_THAT(prompt, testing::StartsWith("user: <fake_token_around_image><row_1_col_1><image>"));
  EXPECT_THAT(prompt, testing::EndsWith("<fake_token_around_image>\nOne\ntwo\nuser: Three\nassistant: "));
}

TEST_F(ImagesTest, TextAloneNeedsNone) {
  serve_images();
  reply("/v1/chat/completions", chat({user("What is <image> in HTML?")}));
  EXPECT_TRUE(engine_->last_request.media.empty());
  EXPECT_THAT(tokenizer_.decode(engine_->last_request.prompt, false).value(),
              HasSubstr("User: What is <image>"));
}

TEST_F(ImagesTest, ErrorsNameThePart) {
  serve_images();
  const auto expect = [&](const std::string& url, const char* message) {
    const auto [status, error] = error_of(url);
    EXPECT_EQ(status, 400) << url.substr(0, 60);
    EXPECT_EQ(error.at("param").as_string(), "messages[0].content[1].image_url") << url.substr(0, 60);
    EXPECT_THAT(std::string(error.at("message").as_string()), HasSubstr(message));
  };
  expect("https://127.0.0.1/cat.png", "127.0.0.1 has no public address");
  expect("file:///etc/passwd", "need a server with --allowed-local-media-path");
  expect("cat.png", "must be an http(s) URL, or a data: URL in base64");
  expect("data:image/png,raw", "must be an http(s) URL, or a data: URL in base64");
  expect("data:image/png;base64,!!!!", "is not a base64 character");
  expect("data:image/png;base64,TWFu", "the format of the image is unknown");
  expect("data:image/png;base64," +
             encode_base64(media::file_bytes(golden_.directory + "/rgb.png").substr(0, 900)),
         "the PNG image is damaged");
  expect("", "must be an object with a url");
}

TEST_F(ImagesTest, OnlyAPartWithoutATypeIsAPlainUrl) {
  serve_images();
  const std::string url =
      "data:image/png;base64," + encode_base64(media::file_bytes(golden_.directory + "/rgb.png"));
  const auto status = [&](json::object part) {
    part["image_url"] = url;
    return post("/v1/chat/completions", chat({user(json::array{std::move(part)})})).status;
  };
  EXPECT_EQ(status({}), 200);
  EXPECT_EQ(status({{"type", "image_url"}}), 400);
}

// The address is refused only when the server fetches it.
TEST_F(ImagesTest, RoutesThatCountTokensFetchThem) {
  serve_images();
  const std::string url = "https://127.0.0.1/cat.png";
  const json::object asked = user(json::array{image(url)});
  const json::object item = user(json::array{json::object{{"type", "input_image"}, {"image_url", url}}});
  const json::object block{{"type", "image"}, {"source", {{"type", "url"}, {"url", url}}}};
  for (const auto& [path, body] : std::initializer_list<std::pair<std::string, json::object>>{
           {"/tokenize", json::object{{"messages", json::array{asked}}}},
           {"/v1/responses/input_tokens", json::object{{"model", "demo"}, {"input", json::array{item}}}},
           {"/v1/messages/count_tokens",
            json::object{{"model", "demo"}, {"messages", json::array{user(json::array{block})}}}}})
    EXPECT_THAT(post(path, json::serialize(body)).body, HasSubstr("127.0.0.1 has no public address")) << path;
}

TEST_F(ImagesTest, AnErrorNamesTheTokenThatTheTokenizerLacks) {
  token_ = "<|vision_pad|>";
  serve_images();
  const auto [status, error] = error_of(url_of("rgb.png"));
  EXPECT_EQ(status, 500);
  EXPECT_THAT(std::string(error.at("message").as_string()),
              HasSubstr("the tokenizer has no token \"<|vision_pad|>\": the prompt lacks its id 259"));
}

TEST_F(ImagesTest, LimitsAreTold) {
  serve_images(true, 30);
  const std::string small = url_of("rgb.png");
  const auto message = [&](json::array parts) {
    const http::Response response = post("/v1/chat/completions", chat({user(std::move(parts))}));
    EXPECT_EQ(response.status, 400);
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  };
  EXPECT_THAT(message({image(small), image(small), image(small)}),
              HasSubstr("At most 2 image(s) may be provided in one prompt"));
  EXPECT_THAT(message({image(small), image(small)}),
              HasSubstr("needs 20 tokens, which is more than the context of 30"));
  EXPECT_THAT(message({image(small)}), HasSubstr("prompt is too long"));
  EXPECT_THAT(message({image(small), text("<image>")}),
              HasSubstr("the prompt has 2 \"<image>\", but the request has 1 images"));
  EXPECT_THAT(message({json::object{{"type", "input_audio"}}}), HasSubstr("demo takes images and no sound"));
  EXPECT_THAT(message({json::object{{"type", "video_url"}}}), HasSubstr("demo takes images and no videos"));
  EXPECT_THAT(message({json::object{{"type", "film"}}}),
              HasSubstr("only parts of type text, thinking, image_url, video_url, audio_url and input_audio"));
}

// Tests audio in chats. The engine's input must equal the output of transformers' processor
// (tests/data/sound).
class PromptSoundTest : public ServeTest {
 protected:
  void serve_sound(int context = 400) {
    serve_sound(golden_, {.mels = 80, .frames = 200, .tokens = 50, .token_id = 259}, "<|AUDIO|>", context);
  }
  void serve_sound(const VisionGolden& golden, const EngineInfo::SoundRule& rule, const std::string& token,
                   int context) {
    tokenizer_ = Tokenizer::load(golden.directory).value();
    template_ =
        ChatTemplate::compile(media::file_bytes(golden.directory + "/chat_template.jinja"), {}).value();
    serve([](const Request&, int) { return Script{.tokens = {40, 41, 257}}; },
          [&](ServeOptions& options, http::ServerOptions&) {
            engine_->described.sound = rule;
            options.rules.limits.vocab_size = 272;
            options.rules.max_model_len = context;
            options.rules.sounds_max = 2;
            options.media.prompt_sound = PromptSound{media::LogMel({.mels = 80, .seconds = 2}), token};
            options.eos_ids = {257};
          });
  }

  static std::string file(const std::string& name) { return media::file_bytes(media::kSoundRoot + name); }
  static json::object input(const std::string& bytes) {
    return {{"type", "input_audio"}, {"input_audio", {{"data", encode_base64(bytes)}, {"format", "wav"}}}};
  }
  static json::object text(const std::string& words) { return {{"type", "text"}, {"text", words}}; }
  static std::string chat(json::array parts) {
    return json::serialize(json::object{
        {"model", "demo"},
        {"messages", json::array{json::object{{"role", "user"}, {"content", std::move(parts)}}}}});
  }

  // Returns a conversation with two audios: this one and short.wav.
  static std::string conversation(const std::string& first) {
    const json::object url{
        {"type", "audio_url"},
        {"audio_url", {{"url", "data:audio/wav;base64," + encode_base64(file("short.wav"))}}}};
    return json::serialize(json::object{
        {"model", "demo"},
        {"messages",
         json::array{json::object{{"role", "user"},
                                  {"content", json::array{input(file(first)), text("What is this sound?")}}},
                     json::object{{"role", "assistant"}, {"content", "A chirp."}},
                     json::object{{"role", "user"}, {"content", json::array{text("And this?"), url}}}}}});
  }
  static void expect_spectrogram(const MediaPart& part, const std::vector<float>& mel) {
    ASSERT_EQ(part.bytes.size(), 4 * mel.size());
    for (std::size_t k = 0; k < mel.size(); ++k) {
      float value = 0;
      std::memcpy(&value, part.bytes.data() + 4 * k, 4);
      ASSERT_NEAR(value, mel[k], 1e-5F) << k;
    }
  }

  const VisionGolden golden_{"qwen2_audio", media::kSoundRoot};
};

TEST_F(PromptSoundTest, ReachesTheEngineAsTransformersPreparesIt) {
  serve_sound();
  reply("/v1/chat/completions", conversation("chirp.wav"));
  const Request& request = engine_->last_request;
  EXPECT_EQ(request.prompt, golden_.values<TokenId>("ids"));
  ASSERT_EQ(request.media.size(), 2U);
  EXPECT_TRUE(check_media(request.media, request.prompt.size(), engine_->described).has_value());
  const auto frames = golden_.values<std::int32_t>("frames");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(request.media[i].columns, (frames[i] + 1) / 2);
    expect_spectrogram(request.media[i], golden_.values<float>(i == 0 ? "mel.chirp.wav" : "mel.short.wav"));
  }
}

// This model always reads whole windows. An audio that is longer than a window is split.
TEST_F(PromptSoundTest, AWindowOrSeveral) {
  const VisionGolden golden("voxtral", media::kSoundRoot);
  serve_sound(golden, {.mels = 80, .frames = 200, .tokens = 25, .token_id = 260, .whole = true}, "[AUDIO]",
              400);
  reply("/v1/chat/completions", conversation("long.wav"));
  const Request& request = engine_->last_request;
  EXPECT_EQ(request.prompt, golden.values<TokenId>("ids"));
  ASSERT_EQ(request.media.size(), 3U);
  EXPECT_TRUE(check_media(request.media, request.prompt.size(), engine_->described).has_value());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(request.media[i].columns, 100);
    expect_spectrogram(request.media[i],
                       golden.values<float>(i == 2 ? "mel.short.wav.0" : fmt::format("mel.long.wav.{}", i)));
  }
  EXPECT_NE(request.media[0].digest, request.media[1].digest);
  serve_sound(golden, {.mels = 80, .frames = 200, .tokens = 25, .token_id = 260, .whole = true}, "[AUDIO]",
              49);
  const http::Response response = post("/v1/chat/completions", chat({input(file("long.wav"))}));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("the sound needs 50 tokens"));
}

TEST_F(PromptSoundTest, ErrorsNameThePart) {
  serve_sound(60);
  const auto expect = [&](json::object part, const char* field, const char* message) {
    const http::Response response =
        post("/v1/chat/completions", chat({text("Listen:"), std::move(part), text("")}));
    EXPECT_EQ(response.status, 400);
    const json::object error = json::parse(response.body).at("error").as_object();
    EXPECT_EQ(error.at("param").as_string(), field) << message;
    EXPECT_THAT(std::string(error.at("message").as_string()), HasSubstr(message));
  };
  const char* const audio = "messages[0].content[1].input_audio";
  expect(input("RIFF"), audio, "");
  expect(input(file("chirp.wav").substr(0, 60)), audio, "too short for the model");
  std::string long_sound = file("chirp.wav");
  long_sound += long_sound.substr(44);
  for (const std::size_t at : {4U, 40U}) {  // offsets of the lengths in the WAV header
    const auto length = static_cast<std::uint32_t>(long_sound.size() - at - 4);
    std::memcpy(long_sound.data() + at, &length, 4);
  }
  expect(input(long_sound), audio, "the sound has 2.6 seconds, but the model accepts at most 2");
  expect({{"type", "input_audio"}, {"input_audio", json::object()}},
         "messages[0].content[1].input_audio.data", "is missing");
  expect({{"type", "audio_url"}, {"audio_url", {{"url", "https://127.0.0.1/a.wav"}}}},
         "messages[0].content[1].audio_url", "--allowed-media-domains 127.0.0.1");
  expect({{"type", "image_url"}, {"image_url", {{"url", "data:image/png;base64,TWFu"}}}},
         "messages[0].content[1].image_url", "demo takes sound and no images");
}

}  // namespace
}  // namespace octavo
