#include "hub/settings.h"

#include <gtest/gtest.h>

#include <map>

#include "base/scratch_directory.h"

namespace octavo::hub {
namespace {

Settings settings(const std::map<std::string, std::string>& variables) {
  return settings_of([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

TEST(Settings, WhereTheCacheIs) {
  EXPECT_EQ(settings({{"HOME", "/h"}}).cache_dir, "/h/.cache/huggingface/hub");
  EXPECT_EQ(settings({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).cache_dir, "/x/huggingface/hub");
  EXPECT_EQ(settings({{"HOME", "/h"}, {"HF_HOME", "~/models"}}).cache_dir, "/h/models/hub");
  EXPECT_EQ(settings({{"HF_HOME", "/a"}, {"HF_HUB_CACHE", "/b"}}).cache_dir, "/b");
}

TEST(Settings, WhoAsks) {
  const ScratchDirectory home;
  home.write("token", "hf_stored\n");
  home.write("other", "hf_other");
  EXPECT_EQ(settings({{"HF_HOME", home.path()}}).token, "hf_stored");
  EXPECT_EQ(settings({{"HF_HOME", home.path()}, {"HF_TOKEN_PATH", home / "other"}}).token, "hf_other");
  EXPECT_EQ(settings({{"HF_HOME", home.path()}, {"HF_TOKEN", "hf_given"}}).token, "hf_given");
  EXPECT_EQ(settings({{"HF_HOME", "/nowhere"}}).token, "");
}

TEST(Settings, WhomToAsk) {
  EXPECT_EQ(settings({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(settings({{"HF_ENDPOINT", "http://mirror:8080/hub/"}}).endpoint, "http://mirror:8080/hub");
  EXPECT_FALSE(settings({{"HF_HUB_OFFLINE", "0"}}).offline);
  EXPECT_TRUE(settings({{"HF_HUB_OFFLINE", "1"}}).offline);
  EXPECT_TRUE(settings({{"TRANSFORMERS_OFFLINE", "true"}}).offline);
}

}  // namespace
}  // namespace octavo::hub
