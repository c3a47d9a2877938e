// Tests images in requests to pooling models.
#include <gmock/gmock.h>

#include "serve/images_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

// vLLM's form of /v1/embeddings: a conversation with images is one text.
TEST_F(ImagesTest, AreEmbeddedAsPartsOfAConversation) {
  serve_images(true, 400, Task::embed);
  const json::array messages{user(json::array{image(url_of("rgb.png")), text("What is this?")})};
  const auto body = [&](json::object fields) {
    fields["messages"] = messages;
    return json::serialize(fields);
  };
  for (const char* path : {"/v1/embeddings", "/pooling"}) {
    const json::object answer = reply(path, body({{"normalize", false}}));
    const Request& request = engine_->last_request;
    EXPECT_EQ(request.task, Task::embed);
    ASSERT_EQ(request.media.size(), golden_.tiles("tiles.rgb.png").size());
    for (const MediaPart& part : request.media)
      for (int k = 0; k < 4; ++k) EXPECT_EQ(request.prompt[static_cast<std::size_t>(part.first + k)], 259);
    const json::object& item = answer.at("data").at(0).as_object();
    const json::array& vector = item.at(path == std::string("/pooling") ? "data" : "embedding").as_array();
    EXPECT_EQ(vector.at(0).to_number<std::size_t>(), request.prompt.size());
    EXPECT_EQ(vector.at(1).to_number<std::size_t>(), request.media.size());
  }
  const http::Response cut = post("/v1/embeddings", body({{"truncate_prompt_tokens", 5}}));
  EXPECT_EQ(cut.status, 400);
  EXPECT_THAT(cut.body, HasSubstr("messages: the conversation has"));
  const http::Response broken = post(
      "/v1/embeddings",
      json::serialize(json::object{{"messages", {user(json::array{image("data:image/png;base64,TWFu")})}}}));
  EXPECT_EQ(broken.status, 400);
  EXPECT_THAT(broken.body, HasSubstr("messages[0].content[0].image_url"));
}

// Cohere's /v2/embed: each image is one input, or part of one.
TEST_F(ImagesTest, AreInputsOfCohere) {
  serve_images(true, 400, Task::embed);
  const json::object words{{"content", {text("Waves")}}};
  const json::object both{{"content", {text("Waves"), image(url_of("rgb.png"))}}};
  const auto vectors = [&](const char* field, json::array items) {
    const json::object answer = reply("/v2/embed", json::serialize(json::object{{field, std::move(items)}}));
    EXPECT_FALSE(answer.contains("texts"));
    EXPECT_EQ(answer.at("meta").at("billed_units").at("input_tokens"), 0);
    EXPECT_GT(answer.at("meta").at("billed_units").at("image_tokens").to_number<int>(), 0);
    return answer.at("embeddings").at("float").as_array();
  };
  const json::array images = vectors("images", {url_of("rgb.png"), url_of("rgb.png")});
  ASSERT_EQ(images.size(), 2U);
  EXPECT_EQ(images[0], images[1]);
  EXPECT_GT(images[0].at(1).to_number<double>(), 0) << "the prompt has media";
  const json::array mixed = vectors("inputs", {words, both});
  ASSERT_EQ(mixed.size(), 2U);
  EXPECT_EQ(mixed[0].at(1).to_number<double>(), 0);
  EXPECT_GT(mixed[1].at(1).to_number<double>(), 0);
  const http::Response broken = post("/v2/embed", R"({"inputs":[{"content":[{"type":"audio"}]}]})");
  EXPECT_EQ(broken.status, 400);
  EXPECT_THAT(broken.body, HasSubstr("inputs[0].content[0]"));
}

TEST_F(ImagesTest, OfDocumentsAreEmbeddedForScores) {
  serve_images(true, 400, Task::embed);
  const auto body = [&](json::value documents) {
    return json::serialize(json::object{{"queries", "A cat"}, {"documents", std::move(documents)}});
  };
  const json::object picture{{"content", {image(url_of("rgb.png")), text("Waves")}}};
  const json::object answer = reply("/score", body({picture, json::object{{"content", {text("cats")}}}}));
  EXPECT_LT(answer.at("data").at(0).at("score").to_number<double>(), 1);
  EXPECT_EQ(answer.at("data").at(1).at("score").to_number<double>(), 1) << "neither has an image";
  EXPECT_EQ(reply("/score", body(picture)).at("data").at(0), answer.at("data").at(0));
  const Request& request = engine_->last_request;
  ASSERT_EQ(request.media.size(), golden_.tiles("tiles.rgb.png").size());
  for (const MediaPart& part : request.media)
    for (int k = 0; k < 4; ++k) EXPECT_EQ(request.prompt[static_cast<std::size_t>(part.first + k)], 259);
  const http::Response broken =
      post("/score", body({"x", json::object{{"content", {image("data:image/png;base64,TWFu")}}}}));
  EXPECT_EQ(broken.status, 400);
  EXPECT_THAT(broken.body, HasSubstr("documents[1].content[0].image_url"));
  serve_images(true, 30, Task::embed);
  EXPECT_THAT(post("/score", body(picture)).body,
              HasSubstr("documents: a text has 39 tokens, but the model accepts at most 30"));
}

TEST_F(ImagesTest, OfBothAreInThePromptOfAPair) {
  serve_images(false, 800, Task::classify);
  const json::object picture{{"content", {image(url_of("rgb.png"))}}};
  json::object body{{"query", {{"content", {image(url_of("rgb.png")), text("Waves")}}}},
                    {"documents", {"Cats", picture}},
                    {"use_activation", false}};
  const json::array results = reply("/rerank", json::serialize(body)).at("results").as_array();
  const std::size_t parts = golden_.tiles("tiles.rgb.png").size();
  EXPECT_EQ(results.at(0).at("index"), 1);
  EXPECT_EQ(results.at(0).at("document").at("multi_modal"), picture.at("content"));
  EXPECT_EQ(results.at(0).at("relevance_score").to_number<std::size_t>(), 2 * parts);
  EXPECT_EQ(results.at(1).at("document").at("text"), "Cats");
  EXPECT_EQ(results.at(1).at("relevance_score").to_number<std::size_t>(), parts);
  body["documents"] =
      json::array{json::object{{"content", {image(url_of("rgb.png")), image(url_of("rgb.png"))}}}};
  EXPECT_THAT(post("/rerank", json::serialize(body)).body, HasSubstr("At most 2 image(s)"));
  body["documents"] = json::array(256, picture);
  EXPECT_THAT(post("/rerank", json::serialize(body)).body,
              HasSubstr("at most 256 images and videos, got 512"));
}

}  // namespace
}  // namespace octavo
