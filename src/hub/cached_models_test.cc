#include "hub/cached_models.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "hub/cache.h"
#include "hub/snapshot.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kOld(40, 'a');
const std::string kNew(40, 'b');

class CacheTest : public testing::Test {
 protected:
  void add(const std::string& commit, const std::string& file, const std::string& etag,
           std::string_view bytes) {
    dir_.write("models--org--name/blobs/" + etag, bytes);
    ASSERT_TRUE(repo_.link(commit, file, etag).has_value());
  }
  void add_two() {
    for (const std::string& commit : {kOld, kNew}) {
      add(commit, "config.json", "config" + commit.substr(0, 1), "{}");
      add(commit, "model.safetensors", "weights", "0123456789");
    }
    ASSERT_TRUE(repo_.set_commit_of("v1", kOld).has_value());
    ASSERT_TRUE(repo_.set_commit_of("main", kNew).has_value());
    ASSERT_TRUE(repo_.set_commit_of("refs/pr/1", kNew).has_value());
  }
  bool is_stored(std::string_view blob) const { return fs::exists(repo_.blob(blob)); }

  ScratchDirectory dir_;
  RepoCache repo_{dir_.path(), "org/name"};
};

TEST_F(CacheTest, LinksAreRelativeAndMayBeMadeTwice) {
  add(kOld, "config.json", "e1", "{}");
  add(kOld, "config.json", "e1", "{}");
  add(kOld, "sub/a.jinja", "e2", "x");
  EXPECT_EQ(fs::read_symlink(repo_.snapshot(kOld) / "config.json"), "../../blobs/e1");
  EXPECT_EQ(fs::read_symlink(repo_.snapshot(kOld) / "sub/a.jinja"), "../../../blobs/e2");
  add(kOld, "config.json", "e3", "{ }");
  EXPECT_EQ(fs::read_symlink(repo_.snapshot(kOld) / "config.json"), "../../blobs/e3");
}

TEST_F(CacheTest, Revisions) {
  add_two();
  EXPECT_EQ(repo_.commit_of("main"), kNew);
  EXPECT_EQ(repo_.commit_of("refs/pr/1"), kNew);
  EXPECT_EQ(repo_.commit_of(kOld), kOld);
  EXPECT_EQ(repo_.commit_of("v2"), std::nullopt);
  dir_.write("models--org--name/refs/broken", "../../../etc");
  EXPECT_EQ(repo_.commit_of("broken"), std::nullopt);
}

TEST_F(CacheTest, ListsWhatIsThere) {
  add_two();
  dir_.write("models--org--begun/blobs/e.incomplete", "abc");
  dir_.write("datasets--org--name/blobs/e", "abc");
  dir_.write("models--..--x/blobs/e", "abc");
  const auto models = cached_models(dir_.path());
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].repo, "org/begun");
  EXPECT_FALSE(models[0].complete);
  EXPECT_EQ(models[0].bytes, 3u);
  EXPECT_EQ(models[1].commit, kOld);
  EXPECT_TRUE(models[1].complete);
  EXPECT_EQ(models[1].bytes, 12u);
  EXPECT_THAT(models[1].revisions, ElementsAre("v1"));
  EXPECT_THAT(models[2].revisions, testing::UnorderedElementsAre("main", "refs/pr/1"));
  EXPECT_TRUE(cached_models(dir_ / "nothing").empty());
}

TEST_F(CacheTest, RemovingARevisionLeavesTheOthersTheirBlobs) {
  add_two();
  EXPECT_EQ(remove_model(dir_.path(), "org/name", "main").value(), 2u);
  EXPECT_TRUE(is_stored("weights") && is_stored("configa"));
  EXPECT_FALSE(is_stored("configb"));
  EXPECT_EQ(repo_.commit_of("main"), std::nullopt);
  EXPECT_EQ(repo_.commit_of("v1"), kOld);
  EXPECT_TRUE(model_in(repo_.snapshot(kOld), "").has_value());
  EXPECT_EQ(remove_model(dir_.path(), "org/name", "main").error().code, ErrorCode::not_found);
}

TEST_F(CacheTest, RemovingARepositoryRemovesAllOfIt) {
  add_two();
  dir_.write(".locks/models--org--name/weights.lock", "");
  EXPECT_EQ(remove_model(dir_.path(), "org/name", "").value(), 14u);
  EXPECT_FALSE(fs::exists(repo_.folder()) || fs::exists(repo_.locks()));
  EXPECT_EQ(remove_model(dir_.path(), "org/name", "").error().code, ErrorCode::not_found);
}

TEST_F(CacheTest, SaysWhatIsMissing) {
  const fs::path snapshot = repo_.snapshot(kOld);
  add(kOld, "model.safetensors.index.json", "index",
      R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  add(kOld, "model-00001-of-00002.safetensors", "one", "1");
  EXPECT_THAT(model_in(snapshot, "").error().message, HasSubstr("config.json is missing"));
  add(kOld, "config.json", "config", "{}");
  EXPECT_THAT(model_in(snapshot, "").error().message,
              HasSubstr("model-00002-of-00002.safetensors is missing"));
  EXPECT_FALSE(is_complete(snapshot));
  add(kOld, "model-00002-of-00002.safetensors", "two", "2");
  EXPECT_EQ(model_in(snapshot, "").value(), snapshot);
  fs::remove(repo_.blob("two"));
  EXPECT_FALSE(is_complete(snapshot)) << "a link that leads nowhere";
  add(kOld, "model.safetensors.index.json", "index", "{");
  EXPECT_THAT(model_in(snapshot, "").error().message, HasSubstr("index"));
}

TEST_F(CacheTest, FindsGgufFiles) {
  const fs::path snapshot = repo_.snapshot(kOld);
  add(kOld, "m-Q8_0-00001-of-00002.gguf", "one", "1");
  EXPECT_THAT(model_in(snapshot, "Q8_0").error().message, HasSubstr("only 1 of the 2 parts of m-Q8_0"));
  EXPECT_FALSE(is_complete(snapshot));
  add(kOld, "m-Q8_0-00002-of-00002.gguf", "two", "2");
  add(kOld, "m-Q4_0.gguf", "four", "4");
  EXPECT_EQ(model_in(snapshot, "Q8_0").value(), snapshot / "m-Q8_0-00001-of-00002.gguf");
  EXPECT_EQ(model_in(snapshot, "q4_0").value(), snapshot / "m-Q4_0.gguf");
  EXPECT_TRUE(is_complete(snapshot));
}

}  // namespace
}  // namespace octavo::hub
