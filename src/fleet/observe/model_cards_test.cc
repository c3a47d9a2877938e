#include "fleet/observe/model_cards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ModelCards, WhatHasAParentIsAnAdapter) {
  const auto found = read_model_cards(
      R"({"object":"list","data":[{"id":"llama","parent":null,"max_model_len":8},{"id":"tale","parent":"llama"},
          {"id":7},{"root":"x"},"no card",{"id":"base"}]})");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->models, ElementsAre("llama", "base"));
  EXPECT_THAT(found->adapters, ElementsAre("tale"));
  EXPECT_EQ(found->cards.at("llama"), R"({"id":"llama","parent":null,"max_model_len":8})");
  EXPECT_EQ(found->cards.size(), 3);
}

TEST(ModelCards, TheStateOfAReplicaIsNotOnTheCard) {
  const auto found = read_model_cards(
      R"({"data":[{"id":"m","state":"loaded","size":8,"kv_cache_kept":true,"unfinished":1,"last_use":5}]})");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->models, ElementsAre("m"));
  EXPECT_EQ(found->cards.at("m"), R"({"id":"m","size":8})");
}

TEST(ModelCards, AnotherPageIsNone) {
  for (const char* page : {"", "{", "[]", "{}", R"({"data":{}})"})
    EXPECT_FALSE(read_model_cards(page)) << page;
  const auto nothing = read_model_cards(R"({"data":[]})");
  ASSERT_TRUE(nothing);
  EXPECT_THAT(nothing->models, IsEmpty());
}

TEST(ModelCards, ThereAreOnlySoMany) {
  std::string page = R"({"data":[)";
  for (std::size_t i = 0; i < kModelsMax + 2; ++i)
    page += (i ? R"(,{"id":"m)" : R"({"id":"m)") + std::to_string(i) + "\"}";
  const auto found = read_model_cards(page + "]}");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->models.size(), kModelsMax);
}

}  // namespace
}  // namespace octavo::fleet
