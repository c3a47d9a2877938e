#include "hub/selection.h"

#include <gmock/gmock.h>

namespace octavo::hub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(Selection, OneFileOfWeights) {
  const Names names = {
      ".gitattributes",     "README.md",         "config.json",           "generation_config.json",
      "flax_model.msgpack", "model.safetensors", "onnx/model.onnx",       "original/consolidated.00.pth",
      "pytorch_model.bin",  "tokenizer.json",    "tokenizer_config.json", "vocab.txt"};
  EXPECT_THAT(files_needed(names, "").value(),
              ElementsAre("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                          "vocab.txt", "model.safetensors"));
}

TEST(Selection, ShardsWithoutTheirCopies) {
  const Names names = {"additional_chat_templates/tool_use.jinja",
                       "chat_template.jinja",
                       "config.json",
                       "consolidated.safetensors",
                       "model-00002-of-00002.safetensors",
                       "model-00001-of-00002.safetensors",
                       "model.safetensors",
                       "model.safetensors.index.json",
                       "pytorch_model.bin.index.json",
                       "tiktoken.model",
                       "tokenizer.jsonl",
                       "tokenizer.model",
                       "unet/config.json"};
  EXPECT_THAT(files_needed(names, "").value(),
              ElementsAre("additional_chat_templates/tool_use.jinja", "chat_template.jinja", "config.json",
                          "tiktoken.model", "tokenizer.jsonl", "tokenizer.model", "model.safetensors.index.json",
                          "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"));
}

TEST(Selection, MistralsOwnFormatWhereThereIsNoOther) {
  const Names names = {"README.md",
                       "consolidated-00001-of-00002.safetensors",
                       "consolidated-00002-of-00002.safetensors",
                       "consolidated.safetensors.index.json",
                       "params.json",
                       "tekken.json"};
  EXPECT_THAT(
      files_needed(names, "").value(),
      ElementsAre("params.json", "tekken.json", "consolidated.safetensors.index.json",
                  "consolidated-00001-of-00002.safetensors", "consolidated-00002-of-00002.safetensors"));
}

TEST(Selection, AnAdapter) {
  const Names names = {"README.md",
                       "adapter_config.json",
                       "adapter_model.bin",
                       "adapter_model.safetensors",
                       "checkpoint-8/adapter_config.json",
                       "tokenizer.json"};
  EXPECT_THAT(adapter_files(names).value(), ElementsAre("adapter_config.json", "adapter_model.safetensors"));
  EXPECT_THAT(adapter_files(Names{"adapter_config.json", "adapter_model.bin"}).value(),
              ElementsAre("adapter_config.json", "adapter_model.bin"));
  EXPECT_THAT(adapter_files(Names{"adapter_config.json"}).error().message,
              HasSubstr("the adapter has neither adapter_model.safetensors nor adapter_model.bin"));
}

TEST(Selection, ModulesOfSentenceTransformers) {
  const Names names = {"1_Pooling/config.json",
                       "2_Dense/config.json",
                       "2_Dense/model.safetensors",
                       "2_Dense/pytorch_model.bin",
                       "config.json",
                       "model.safetensors",
                       "modules.json",
                       "onnx/config.json",
                       "onnx/model.onnx",
                       "openvino/model.safetensors"};
  EXPECT_THAT(files_needed(names, "").value(),
              ElementsAre("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors",
                          "config.json", "modules.json", "model.safetensors"));
}

TEST(Selection, HeadsOfBgeM3) {
  const Names names = {"colbert_linear.pt", "config.json", "onnx/model.onnx", "pytorch_model.bin",
                       "sparse_linear.pt"};
  EXPECT_THAT(files_needed(names, "").value(),
              ElementsAre("colbert_linear.pt", "config.json", "sparse_linear.pt", "pytorch_model.bin"));
}

TEST(Selection, TheAdapterForImagesOfPhi4Multimodal) {
  const Names names = {"config.json",
                       "model.safetensors",
                       "speech-lora/adapter_config.json",
                       "speech-lora/adapter_model.safetensors",
                       "adapters/retrieval/adapter_config.json",
                       "vision-lora/adapter_config.json",
                       "vision-lora/adapter_model.safetensors"};
  EXPECT_THAT(
      files_needed(names, "").value(),
      ElementsAre("config.json", "adapters/retrieval/adapter_config.json", "vision-lora/adapter_config.json",
                  "vision-lora/adapter_model.safetensors", "model.safetensors"));
}

TEST(Selection, TheGgufFileOfAVariant) {
  const Names names = {"README.md",
                       "qwen3-q4_k_m.gguf",
                       "qwen3-q8_0.gguf",
                       "qwen3-iq4_xs.gguf",
                       "mmproj-q8_0.gguf",
                       "BF16/qwen3-BF16-00002-of-00002.gguf",
                       "BF16/qwen3-BF16-00001-of-00002.gguf"};
  const char* encoder = "mmproj-q8_0.gguf";
  EXPECT_THAT(files_needed(names, "Q4_K_M").value(), ElementsAre(encoder, "qwen3-q4_k_m.gguf"));
  EXPECT_THAT(files_needed(names, "q8_0").value(), ElementsAre(encoder, "qwen3-q8_0.gguf"));
  EXPECT_THAT(files_needed(names, "BF16").value(), ElementsAre(encoder, "BF16/qwen3-BF16-00001-of-00002.gguf",
                                                               "BF16/qwen3-BF16-00002-of-00002.gguf"));
  EXPECT_THAT(files_needed(names, "Q4_XS").error().message, HasSubstr("no GGUF file has the name Q4_XS"));
  EXPECT_THAT(files_needed(names, "").error().message, HasSubstr("qwen3-q4_k_m, qwen3-q8_0"));
}

TEST(Selection, TheEncoderOfAGgufModelIsInF16) {
  EXPECT_EQ(best_mmproj(Names{"mmproj-BF16.gguf", "mmproj-F16.gguf", "mmproj-F32.gguf"}), "mmproj-F16.gguf");
  EXPECT_EQ(best_mmproj(Names{"mmproj-F32.gguf", "see-mmproj-bf16.gguf"}), "see-mmproj-bf16.gguf");
  EXPECT_EQ(best_mmproj(Names{"mmproj-b.gguf", "mmproj-a.gguf"}), "mmproj-a.gguf");
  EXPECT_FALSE(is_mmproj("mmproj-F16.safetensors"));
}

TEST(Selection, AnOnlyGgufFileNeedsNoName) {
  EXPECT_THAT(files_needed(Names{"a.gguf", "README.md"}, "").value(), ElementsAre("a.gguf"));
}

TEST(Selection, PyTorchsFilesWhereThereAreNoOthers) {
  EXPECT_THAT(
      files_needed(Names{"1_Dense/config.json", "1_Dense/pytorch_model.bin", "config.json",
                         "flax_model.msgpack", "pytorch_model.bin", "training_args.bin"},
                   "")
          .value(),
      ElementsAre("1_Dense/config.json", "1_Dense/pytorch_model.bin", "config.json", "pytorch_model.bin"));
  EXPECT_THAT(files_needed(Names{"config.json", "pytorch_model-00001-of-00002.bin",
                                 "pytorch_model-00002-of-00002.bin", "pytorch_model.bin.index.json"},
                           "")
                  .value(),
              ElementsAre("config.json", "pytorch_model.bin.index.json", "pytorch_model-00001-of-00002.bin",
                          "pytorch_model-00002-of-00002.bin"));
}

TEST(Selection, SaysThatThereIsNothingToLoad) {
  const auto files = files_needed(Names{"config.json", "tf_model.h5"}, "");
  ASSERT_FALSE(files.has_value());
  EXPECT_EQ(files.error().code, ErrorCode::not_found);
  EXPECT_THAT(files.error().message, HasSubstr("neither safetensors, pytorch_model.bin nor GGUF"));
}

TEST(Selection, Parts) {
  EXPECT_EQ(part_of("a-00001-of-00012.gguf").of, 12u);
  EXPECT_EQ(part_of("a-00001-of-00012.gguf").stem, "a");
  for (const char* name : {"a.gguf", "a-of-2.gguf", "a-x-of-2.gguf", "-of-2.gguf", "a-1-of-.gguf",
                           "1-of-99999999999999999999.gguf"})
    EXPECT_EQ(part_of(name).of, 1u) << name;
}

}  // namespace
}  // namespace octavo::hub
