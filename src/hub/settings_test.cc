#include "hub/settings.h"

#include <gtest/gtest.h>

#include <map>

#include "base/testing/scratch_directory.h"

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

TEST(Settings, ThePackageIndexIsPips) {
  const ScratchDirectory home;
  home.write(
      "pip.conf",
      "[install]\nindex-url = http://other\n[global]\ntimeout = 9\nindex-url: http://mirror/simple \n");
  home.write("own.conf", "; index-url = http://comment\n[global]\nindex-url=https://u:p@own/simple/\n");
  std::filesystem::create_directories(home / ".config/pip");
  std::filesystem::copy_file(home / "pip.conf", home / ".config/pip/pip.conf");
  const std::string none = "/dev/null";
  EXPECT_EQ(settings({{"PIP_CONFIG_FILE", none}}).package_index, "https://pypi.org/simple");
  EXPECT_EQ(settings({{"HOME", home.path()}}).package_index, "http://mirror/simple");
  EXPECT_EQ(settings({{"HOME", home.path()}, {"PIP_CONFIG_FILE", home / "own.conf"}}).package_index,
            "https://u:p@own/simple/");
  EXPECT_EQ(settings({{"HOME", home.path()}, {"PIP_CONFIG_FILE", none}}).package_index,
            "https://pypi.org/simple");
  EXPECT_EQ(settings({{"HOME", home.path()}, {"PIP_INDEX_URL", "http://set"}}).package_index, "http://set");
}

}  // namespace
}  // namespace octavo::hub
