#include "fleet/view/route_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

TEST(RouteRequest, MediaCountAmongTheTextsTokens) {
  RouteRequest request{.text = "abcdefgh",
                       .media = {7, 9, 8},
                       .media_positions = {{.at = 4, .image = true}, {.at = 4}, {.at = 8, .video = true}}};
  request.tokens = estimated_tokens(request.text);
  const std::uint32_t abcd = estimated_tokens("abcd")[0], efgh = estimated_tokens("efgh")[0];
  estimate_media(request, {.image = 2, .video = 1});
  EXPECT_THAT(request.tokens, ElementsAre(abcd, 7, 7, efgh, 8)) << "sound counts nothing";
  RouteRequest exact{
      .tokens = {1, 2}, .tokens_are_exact = true, .media = {7}, .media_positions = {{.image = true}}};
  estimate_media(exact, {});
  EXPECT_THAT(exact.tokens, ElementsAre(1, 2));
}

}  // namespace
}  // namespace octavo::fleet
