#include "remote/engine_state.h"

#include <gtest/gtest.h>

namespace octavo::remote {
namespace {

template <class State>
bool is(const EngineState& state) {
  return std::holds_alternative<State>(state);
}

TEST(EngineState, TheTableOfTransitions) {
  const EngineState loading = state::Loading{}, up = state::Up{}, asleep = state::Asleep{};
  const EngineState ready = after(loading, event::Ready{.now_us = 5});
  ASSERT_TRUE(is<state::Up>(ready));
  EXPECT_EQ(std::get<state::Up>(ready).since_us, 5);
  EXPECT_EQ(std::get<state::Up>(ready).received_us, 5);
  for (const EngineState& alive : {loading, up}) {
    EXPECT_TRUE(is<state::Loading>(after(alive, event::Died{.restart = true})));
    EXPECT_TRUE(is<state::Broken>(after(alive, event::Died{.restart = false})));
  }
  EXPECT_TRUE(is<state::Loading>(after(up, event::WeightsChosen{})));
  EXPECT_TRUE(is<state::Asleep>(after(up, event::FellAsleep{})));
  EXPECT_TRUE(is<state::Loading>(after(asleep, event::Woken{})));
  EXPECT_TRUE(is<state::Unloaded>(after(up, event::UnloadWanted{})));
  EXPECT_TRUE(is<state::Loading>(after(state::Unloaded{}, event::LoadWanted{})));
  EXPECT_TRUE(is<state::Loading>(after(state::Broken{}, event::LoadWanted{})));
  for (const EngineState& any :
       {loading, up, asleep, EngineState(state::Unloaded{}), EngineState(state::Broken{}), EngineState(state::Stopped{})})
    EXPECT_TRUE(is<state::Stopped>(after(any, event::StopRequested{})));
}

TEST(EngineStateDeathTest, OtherPairsAbort) {
  EXPECT_DEATH((void)after(state::Loading{}, event::FellAsleep{}), "impossible");
  EXPECT_DEATH((void)after(state::Up{}, event::Ready{}), "impossible");
  EXPECT_DEATH((void)after(state::Asleep{}, event::Died{}), "impossible");
  EXPECT_DEATH((void)after(state::Broken{}, event::Woken{}), "impossible");
  EXPECT_DEATH((void)after(state::Loading{}, event::UnloadWanted{}), "impossible");
}

}  // namespace
}  // namespace octavo::remote
