#include "request/media_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "request/prefix_hash.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Hash128 kIdentity{7, 9};

MediaPart part(std::uint64_t digest, int first, int tokens) {
  return {.digest = {digest, 0}, .first = first, .tokens = tokens, .bytes = {}};
}

TEST(ImageIdentities, BlocksWithoutImagesKeepTheirs) {
  EXPECT_THAT(media_identities(kIdentity, {}, 4), IsEmpty());
  const std::vector<MediaPart> images{part(1, 5, 6)};
  const auto identities = media_identities(kIdentity, images, 4);
  ASSERT_EQ(identities.size(), 3u);
  EXPECT_EQ(identities[0], kIdentity);
  EXPECT_NE(identities[1], kIdentity);
  EXPECT_NE(identities[2], identities[1]);  // the block contains other rows of the image
}

TEST(ImageIdentities, TellImagesAndPlacesApart) {
  const auto of = [](std::vector<MediaPart> images) { return media_identities({}, images, 8).at(0); };
  const Hash128 one = of({part(1, 0, 2)});
  EXPECT_EQ(one, of({part(1, 0, 2)}));
  EXPECT_NE(one, of({part(2, 0, 2)}));
  EXPECT_NE(one, of({part(1, 1, 2)}));
  EXPECT_NE(one, of({part(1, 0, 2), part(1, 2, 2)}));
  EXPECT_NE(of({part(1, 0, 2), part(2, 2, 2)}), of({part(2, 0, 2), part(1, 2, 2)}));
}

// A sound changes the keys of all blocks of the prompt.
TEST(ImageIdentities, SoundsBelongToTheWholePrompt) {
  EXPECT_THAT(media_identities(kIdentity, std::vector{part(1, 0, 0)}, 4), IsEmpty());
  EXPECT_EQ(with_sources(kIdentity, {}), kIdentity);
  EXPECT_EQ(with_sources(kIdentity, std::vector{part(1, 0, 2)}), kIdentity);
  const Hash128 one = with_sources(kIdentity, std::vector{part(1, 0, 0)});
  EXPECT_NE(one, kIdentity);
  EXPECT_NE(one, with_sources(kIdentity, std::vector{part(2, 0, 0)}));
  EXPECT_NE(one, with_sources({}, std::vector{part(1, 0, 0)}));
}

TEST(ImageIdentities, GoIntoTheKeysOfTheirBlocksAndOfThoseBehind) {
  const PrefixHasher hasher({}, 4);
  const std::vector<TokenId> tokens(16, 3);
  const auto keys = [&](const std::vector<MediaPart>& images) {
    std::vector<Hash128> result;
    hasher.extend(tokens, kIdentity, result, media_identities(kIdentity, images, 4));
    return result;
  };
  const auto text = keys({}), first = keys({part(1, 4, 2)}), second = keys({part(2, 4, 2)});
  EXPECT_EQ(text.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_NE(text[i], first[i]);
    EXPECT_NE(first[i], second[i]);
  }
}

// As in Qwen2-VL, a grid of 2 rows and 3 columns takes 3 positions, and so does a grid of 3 rows and 1
// column.
TEST(GridPositions, TokensBehindAnImageStandBehindItsFurthest) {
  std::vector<MediaPart> images{part(1, 2, 6), part(2, 9, 3)};
  images[0].columns = 3;
  images[1].columns = 1;
  GridPositions axes;
  append_grid_positions(images, 0, 14, axes);
  EXPECT_THAT(axes[0], ElementsAre(0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 6, 6, 9, 10));
  EXPECT_THAT(axes[1], ElementsAre(0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(axes[2], ElementsAre(0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 6, 6, 9, 10));
  GridPositions pieces;
  for (int first = 0; first < 14; first += 5)
    append_grid_positions(images, first, std::min(5, 14 - first), pieces);
  EXPECT_EQ(pieces, axes);
}

// A video of three parts with 2 x 1 tokens each, with the time steps of Qwen2.5-VL. The text follows the
// last part.
TEST(GridPositions, PartsOfAVideoBeginTogether) {
  std::vector<MediaPart> parts{part(1, 1, 2), part(2, 3, 2), part(3, 5, 2)};
  for (int i = 0; i < 3; ++i) {
    MediaPart& one = parts[static_cast<std::size_t>(i)];
    one.columns = 2;
    one.frames = 2;
    one.time = 3 * i;
    one.continues = i > 0;
  }
  GridPositions axes;
  append_grid_positions(parts, 0, 9, axes);
  EXPECT_THAT(axes[0], ElementsAre(0, 1, 1, 4, 4, 7, 7, 8, 9));
  EXPECT_THAT(axes[1], ElementsAre(0, 1, 1, 1, 1, 1, 1, 8, 9));
  EXPECT_THAT(axes[2], ElementsAre(0, 1, 2, 1, 2, 1, 2, 8, 9));
  for (int first = 0; first < 9; ++first) {
    GridPositions one;
    append_grid_positions(parts, first, 1, one);
    for (std::size_t axis = 0; axis < 3; ++axis)
      EXPECT_THAT(one[axis], ElementsAre(axes[axis][static_cast<std::size_t>(first)])) << first;
  }
}

TEST(ImageIdentities, TellTimesOfVideosApart) {
  const auto of = [](MediaPart image) { return media_identities({}, std::vector{image}, 8).at(0); };
  MediaPart later = part(1, 0, 2);
  later.time = 1;
  EXPECT_NE(of(part(1, 0, 2)), of(later));
}

}  // namespace
}  // namespace octavo
