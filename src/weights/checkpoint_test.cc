#include "weights/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "weights/slots.h"
#include "weights/testing/safetensors_text.h"
#include "weights/weight_files.h"

namespace octavo {
namespace {

using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  void write(std::string_view name, std::string_view text) { directory_.write(name, text); }
  void write_tensors(const std::string& name,
                     const std::vector<std::pair<std::string, std::vector<float>>>& tensors) {
    write(name, safetensors_text(tensors));
  }
  std::string error() const {
    const auto checkpoint = Checkpoint::open(directory_.path());
    return checkpoint ? "accepted" : checkpoint.error().message;
  }

  ScratchDirectory directory_;
};

TEST_F(CheckpointTest, OneFile) {
  write_tensors("model.safetensors", {{"b", {1, 2}}, {"a", {3}}});
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(checkpoint->tensors().size(), 2u);
  EXPECT_EQ(checkpoint->bytes(), 12u);
  EXPECT_EQ(checkpoint->find("c"), nullptr);
  const View b = view_of(*checkpoint->find("b"));
  EXPECT_EQ(b.shape[0], 2);
  EXPECT_EQ(b.as<float>()[1], 2);
  checkpoint->release(*checkpoint->find("b"));
  EXPECT_EQ(b.as<float>()[1], 2);
}

TEST_F(CheckpointTest, MistralsNamesWhereThereAreNoOthers) {
  write_tensors("consolidated.safetensors", {{"a", {3}}});
  EXPECT_TRUE(is_consolidated(directory_.path()));
  EXPECT_NE(Checkpoint::open(directory_.path())->find("a"), nullptr);
  write_tensors("model.safetensors", {{"b", {1, 2}}});
  EXPECT_FALSE(is_consolidated(directory_.path()));
  EXPECT_EQ(Checkpoint::open(directory_.path())->find("a"), nullptr);
}

TEST_F(CheckpointTest, SaysThatAFileIsALfsPointer) {
  write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  write("tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  EXPECT_THAT(
      error(),
      HasSubstr("model.safetensors, tokenizer.json are git-lfs pointers, not model files"));
}

TEST(ModelPath, SaysThatNothingIsThere) {
  EXPECT_THAT(check_model_path("no/such/folder").error().message,
              testing::StrEq("no/such/folder does not exist"));
  EXPECT_EQ(check_model_path("no/such/folder").error().code, ErrorCode::not_found);
}

TEST_F(CheckpointTest, SaysWhenAFileLostBytesThatWereRead) {
  write_tensors("model.safetensors", {{"a", std::vector<float>(10000, 1)}});
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_TRUE(checkpoint->intact());
  std::filesystem::resize_file(directory_ / "model.safetensors", 4096);
  EXPECT_EQ(number_at(*checkpoint->find("a"), 9999), 0);
  const auto intact = checkpoint->intact();
  ASSERT_FALSE(intact.has_value());
  EXPECT_THAT(intact.error().message, HasSubstr("model.safetensors was shortened"));
}

TEST_F(CheckpointTest, Shards) {
  write_tensors("x.safetensors", {{"b", {1, 2}}});
  write_tensors("y.safetensors", {{"a", {3}}});
  write("model.safetensors.index.json",
        R"({"metadata":{},"weight_map":{"a":"y.safetensors","b":"x.safetensors"}})");
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(view_of(*checkpoint->find("a")).as<float>()[0], 3);
}

TEST_F(CheckpointTest, TheIndexSaysWhichTensorsCount) {
  write_tensors("x.safetensors", {{"a", {9}}, {"b", {2}}, {"extra.scale", {5}}});
  write_tensors("w/y.safetensors", {{"a", {3}}});
  write("model.safetensors.index.json", R"({"weight_map":{"a":"w/y.safetensors","b":"x.safetensors"}})");
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 2u);
  EXPECT_EQ(view_of(*checkpoint->find("a")).as<float>()[0], 3);
}

TEST_F(CheckpointTest, OtherNamesWithoutAnIndex) {
  write_tensors("adapter_model.safetensors", {{"lora", {1}}});
  EXPECT_THAT(error(), HasSubstr("contains neither model.safetensors"));
  write_tensors("qwen.safetensors", {{"a", {3}}});
  const auto one = Checkpoint::open(directory_.path());
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_EQ(one->tensors().size(), 1u);
  write_tensors("rest.safetensors", {{"b", {3}}});
  EXPECT_EQ(Checkpoint::open(directory_.path())->tensors().size(), 2u);
  write_tensors("rest.safetensors", {{"a", {4}}});
  EXPECT_THAT(error(), HasSubstr("tensor a is in several of the files qwen.safetensors, rest.safetensors"));
}

TEST_F(CheckpointTest, ShardsWithoutAnIndexAreAllThere) {
  write_tensors("model-00001-of-00002.safetensors", {{"a", {3}}});
  EXPECT_THAT(error(), HasSubstr("1 of the 2 shards of model are missing"));
  write_tensors("model-00002-of-00002.safetensors", {{"b", {3}}});
  EXPECT_EQ(Checkpoint::open(directory_.path())->tensors().size(), 2u);
}

TEST_F(CheckpointTest, NothingThere) {
  EXPECT_THAT(error(), HasSubstr("contains neither model.safetensors"));
}

TEST_F(CheckpointTest, IndexAndShardsMustAgree) {
  const auto with_index = [&](std::string_view map) {
    write("model.safetensors.index.json", fmt::format(R"({{"weight_map":{}}})", map));
    return error();
  };
  write_tensors("x.safetensors", {{"a", {1}}, {"b", {2}}});
  write_tensors("y.safetensors", {{"a", {1}}});
  EXPECT_THAT(with_index(R"({"a":"x.safetensors","b":"x.safetensors","c":"x.safetensors"})"),
              HasSubstr("the index lists tensor c in x.safetensors"));
  EXPECT_THAT(with_index(R"({"a":"z.safetensors"})"), HasSubstr("cannot open"));
  EXPECT_THAT(with_index(R"({"a":"../x.safetensors"})"), HasSubstr("not the name of a shard"));
  for (const char* name : {"/etc/passwd", "w/../../x.safetensors", "w//x.safetensors", "./x.safetensors", "/x.safetensors"})
    EXPECT_THAT(with_index(fmt::format(R"({{"a":"{}"}})", name)), HasSubstr("not the name of a shard")) << name;
  EXPECT_THAT(with_index(R"({"a":1})"), HasSubstr("must have file names as values"));
  EXPECT_THAT(with_index(R"({"a":"x.safetensors","a":"x.safetensors"})"), HasSubstr("occurs twice"));
  EXPECT_THAT(with_index("[]"), HasSubstr("weight_map must be an object"));
}

TEST_F(CheckpointTest, SlotsMissingUnusedAndWrong) {
  write_tensors("model.safetensors", {{"a", {1}}, {"b", {2, 3}}, {"l.0.inv_freq", {1}}, {"vision.x", {1}}});
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value());
  const auto problem = [&](std::vector<Slot> slots, std::vector<std::string> ignorable) {
    const auto result = check_slots(*checkpoint, slots, ignorable);
    return result ? "fine" : result.error().message;
  };
  EXPECT_EQ(problem({{"a", {1}}, {"b", {2}}}, {"vision.*"}), "fine");
  EXPECT_THAT(problem({{"a", {1}}, {"b", {2}}, {"c", {1}}}, {"vision.*"}),
              HasSubstr("1 of 3 tensors are missing: c"));
  EXPECT_THAT(problem({{"a", {1}}, {"b", {2}}}, {}), HasSubstr("1 tensors do not belong"));
  EXPECT_THAT(problem({{"a", {1}}, {"b", {2}}}, {}), HasSubstr("vision.x"));
  EXPECT_THAT(problem({{"a", {1}}, {"b", {2, 1}}}, {"*"}),
              HasSubstr("tensor b has shape [2], but the configuration requires [2, 1]"));
}

TEST_F(CheckpointTest, NanAndInfinityAreFoundAnywhere) {
  ThreadPool pool(2);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const std::size_t at : {0u, 5000u, 299999u}) {
      std::vector<float> values(300000, 3e38F);
      write_tensors("model.safetensors", {{"a", values}});
      EXPECT_TRUE(check_finite(*Checkpoint::open(directory_.path())->find("a"), pool).has_value());
      values[at] = bad;
      write_tensors("model.safetensors", {{"a", values}});
      const auto checkpoint = Checkpoint::open(directory_.path());
      const auto finite = check_finite(*checkpoint->find("a"), pool);
      ASSERT_FALSE(finite.has_value());
      EXPECT_EQ(finite.error().message, "tensor a contains NaN or infinity in f32");
    }
  }
}

}  // namespace
}  // namespace octavo
