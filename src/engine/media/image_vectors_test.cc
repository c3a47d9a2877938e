// Tests engines that make vectors of conversations with images. The vectors, multiplied by the output matrix
// of the model, are the logits of transformers (tests/data/vision).
#include <cstring>

#include "engine/testing/encoder_rig.h"
#include "engine/testing/image_rig.h"
#include "weights/testing/tensor_values.h"

namespace octavo {
namespace {

using image_rig::Conversation;

// The output matrix, [vocab, dim]. The checkpoint stores the upper halves of floats (bf16).
std::vector<float> output_matrix(const std::string& directory) {
  const auto file = MappedFile::open(directory + "/model.safetensors").value();
  const auto halves =
      values_of<std::uint16_t>(parse_safetensors(file.bytes(), directory).value(), "lm_head.weight");
  std::vector<float> matrix;
  for (const std::uint16_t half : halves)
    matrix.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16));
  return matrix;
}

// Returns the largest difference between the golden logits of the last positions and those of the vectors.
float logits_difference(const Conversation& conversation, std::span<const float> vectors) {
  const std::vector<float> matrix = output_matrix(conversation.golden.directory);
  const std::size_t dim = matrix.size() / conversation.vocab, rows = vectors.size() / dim;
  const auto expected = std::span(conversation.logits).last(rows * conversation.vocab);
  std::vector<float> logits(expected.size());
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t id = 0; id < conversation.vocab; ++id)
      for (std::size_t k = 0; k < dim; ++k)
        logits[row * conversation.vocab + id] += vectors[row * dim + k] * matrix[id * dim + k];
  return difference(logits, expected);
}

std::vector<float> vectors_of(const Conversation& conversation, EngineOptions options) {
  const auto engine =
      encoder_rig::encoder_engine_of(conversation.golden.directory, {}, "cpu", "auto", options);
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  if (!engine) return {};
  Request request;
  request.task = (*engine)->info().tasks.default_task;
  request.prompt = conversation.prompt;
  request.media = conversation.images;
  const auto recorder = std::make_shared<Recorder>();
  const auto id = (*engine)->submit(std::move(request), recorder);
  EXPECT_TRUE(id.has_value()) << id.error().message;
  if (!id) return {};
  recorder->wait_ended(1);
  return recorder->record().ends.at(0).pooled;
}

// Qwen3-VL-Embedding: the vector of the last token.
TEST(ImageVectors, OfAConversationAreThoseOfTransformers) {
  const Conversation conversation("qwen3_vl");
  EngineOptions options;
  options.model.convert = "embed";
  const std::vector<float> vector = vectors_of(conversation, options);
  ASSERT_EQ(vector.size(), 48u);
  EXPECT_LE(logits_difference(conversation, vector), 1e-4F);
}

// ColQwen3: a vector of each token.
TEST(ImageVectors, OfTokensAreThoseOfTransformers) {
  const Conversation conversation("qwen3_vl");
  EngineOptions options;
  options.model.hf_overrides = R"({"architectures": ["ColQwen3"]})";
  const std::vector<float> vectors = vectors_of(conversation, options);
  ASSERT_EQ(vectors.size(), 48 * conversation.prompt.size());
  const std::size_t rows = conversation.bf16_kl.size();
  EXPECT_LE(logits_difference(conversation, std::span(vectors).last(48 * rows)), 1e-4F);
}

// ColPali: a vector of each token, which sees all tokens. The golden file has the vectors instead of logits.
TEST(ImageVectors, OfColPaliAreThoseOfTransformers) {
  const Conversation conversation("colpali");
  const std::vector<float> vectors = vectors_of(conversation, {});
  ASSERT_EQ(vectors.size(), conversation.logits.size());
  EXPECT_LE(difference(vectors, conversation.logits), 1e-4F);
}

}  // namespace
}  // namespace octavo
