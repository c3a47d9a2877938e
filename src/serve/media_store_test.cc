#include "serve/media_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using Media = openai::ChatPrompt::Media;
using openai::MediaKind;
using testing::HasSubstr;

Media named(const std::string& uuid, const std::string& url = "", MediaKind kind = MediaKind::image) {
  return {.field = "part " + uuid, .url = url, .kind = kind, .uuid = uuid};
}

// Returns the URL of the stored medium, or the error.
std::string stored(MediaStore& store, const Media& media, const std::string& client = "a") {
  std::vector<Media> all{media};
  const auto found = store.restore(client, all);
  return found ? all[0].url : found.error().field + ": " + found.error().message;
}

TEST(MediaStore, AUuidStandsForTheDataOfAnEarlierRequest) {
  MediaStore store;
  store.keep("a", {named("x", "data:x"), named("", "data:unnamed")});
  EXPECT_EQ(stored(store, named("x")), "data:x");
  EXPECT_EQ(stored(store, named("x", "data:new")), "data:new");
  store.keep("a", {named("x", "data:newer")});
  EXPECT_EQ(stored(store, named("x")), "data:newer");
  Media fetched = named("y", "https://host/y");
  fetched.bytes = "bytes";
  store.keep("a", {fetched});
  std::vector<Media> all{named("y")};
  ASSERT_TRUE(store.restore("a", all).has_value());
  EXPECT_EQ(all[0].bytes, "bytes");
}

TEST(MediaStore, OthersAreMissing) {
  MediaStore store;
  store.keep("a", {named("x", "data:x")});
  EXPECT_EQ(stored(store, named("z")),
            "part z: Cache miss for image at index 0 but data is not provided: send its url again");
  EXPECT_THAT(stored(store, named("x"), "b"), HasSubstr("Cache miss"));
  EXPECT_THAT(stored(store, named("x", "", MediaKind::video)), HasSubstr("Cache miss for video at index 0"));
  std::vector<Media> all{named("x"), named("v", "data:v", MediaKind::video), named("z")};
  EXPECT_THAT(store.restore("a", all).error().message, HasSubstr("image at index 1"));
}

TEST(MediaStore, TheLeastRecentlyUsedAreDropped) {
  MediaStore store(1000);
  store.keep("a", {named("x", std::string(400, 'x')), named("y", std::string(400, 'y'))});
  EXPECT_EQ(stored(store, named("x")).size(), 400U);
  store.keep("a", {named("z", std::string(400, 'z'))});
  EXPECT_EQ(stored(store, named("x")).size(), 400U);
  EXPECT_THAT(stored(store, named("y")), HasSubstr("Cache miss"));
  store.keep("a", {named("large", std::string(2000, ' '))});
  EXPECT_THAT(stored(store, named("large")), HasSubstr("Cache miss"));
  EXPECT_EQ(stored(store, named("z")).size(), 400U);
}

}  // namespace
}  // namespace octavo
