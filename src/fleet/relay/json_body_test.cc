#include "fleet/relay/json_body.h"

#include <gtest/gtest.h>

#include <boost/json/array.hpp>

namespace octavo::fleet {
namespace {

std::string list_of(std::string_view item, int count) {
  std::string text = R"({"x":[1)";
  for (int i = 0; i < count; ++i) text += item;
  return text + "]}";
}

TEST(JsonBody, TakesNoMoreMemoryThanABodyIsWorth) {
  EXPECT_FALSE(json_object(list_of(",0", 1'000'000)));
  EXPECT_FALSE(json_object(list_of(",[]", 1'000'000)));
  EXPECT_TRUE(json_object(list_of(",0", 10'000))) << "a small one may be dense";
}

TEST(JsonBody, WhatIsAddedBehindItDoesNotCount) {
  auto body = json_object(list_of(",100000", 1'000'000));
  ASSERT_TRUE(body);
  EXPECT_EQ(body->at("x").as_array().size(), 1'000'001U);
  body->insert_or_assign("y", boost::json::array(4'000'000));
  EXPECT_EQ(body->at("y").as_array().size(), 4'000'000U);
}

}  // namespace
}  // namespace octavo::fleet
