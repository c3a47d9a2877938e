#include "request/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

TEST(Pooling, NormaliseGivesLengthOne) {
  std::vector<float> vector{3, 0, -4};
  normalise(vector);
  EXPECT_THAT(vector, ElementsAre(FloatEq(0.6F), 0, FloatEq(-0.8F)));
  std::vector<float> zeros{0, 0};
  normalise(zeros);
  EXPECT_THAT(zeros, ElementsAre(0, 0));
}

TEST(Pooling, ScoresBecomeProbabilities) {
  std::vector<float> logits{0, 100, -100};
  std::vector<float> scores = logits;
  activate(ScoreActivation::none, scores);
  EXPECT_EQ(scores, logits);
  activate(ScoreActivation::sigmoid, scores);
  EXPECT_THAT(scores, ElementsAre(0.5F, FloatEq(1), testing::FloatNear(0, 1e-30F)));
  scores = {-2, 0.5F};
  activate(ScoreActivation::relu, scores);
  EXPECT_THAT(scores, ElementsAre(0, 0.5F));
  scores = {1000, 1000};  // the exponentials do not fit into a double
  activate(ScoreActivation::softmax, scores);
  EXPECT_THAT(scores, ElementsAre(0.5F, 0.5F));
}

}  // namespace
}  // namespace octavo
