#include "kv/saved_states.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

int save(SavedStates& states, PrefixId prefix) {
  const int slot = states.take();
  states.keep(slot, prefix);
  return slot;
}

TEST(SavedStates, AreFoundByTheirPrefix) {
  SavedStates states(10, 3);
  EXPECT_EQ(states.find(1), kNoState);
  const int one = save(states, 1), nine = save(states, 9);  // both states are in the same hash bucket
  EXPECT_NE(one, nine);
  EXPECT_EQ(states.find(1), one);
  EXPECT_EQ(states.find(9), nine);
  EXPECT_EQ(states.find(17), kNoState);
  EXPECT_GE(std::min(one, nine), 10);
}

TEST(SavedStates, TheLeastRecentlyUsedIsLost) {
  SavedStates states(0, 2);
  save(states, 1);
  save(states, 2);
  states.touch(states.find(1));
  save(states, 3);
  EXPECT_NE(states.find(1), kNoState);
  EXPECT_EQ(states.find(2), kNoState);
  EXPECT_NE(states.find(3), kNoState);
}

TEST(SavedStates, WhatIsBeingWrittenIsNeitherFoundNorLost) {
  SavedStates states(0, 2);
  const int a = states.take(), b = states.take();
  EXPECT_NE(a, b);
  EXPECT_EQ(states.take(), kNoState);
  EXPECT_EQ(states.writing(), 2);
  states.reset();
  EXPECT_EQ(states.take(), kNoState);
  states.give_back(a);
  EXPECT_EQ(states.take(), a);
}

TEST(SavedStates, APrefixHasOneState) {
  SavedStates states(0, 2);
  const int first = save(states, 5);
  EXPECT_NE(save(states, 5), first);
  EXPECT_EQ(states.find(5), first);
  save(states, 6);  // uses the slot of the removed state
  EXPECT_EQ(states.find(5), first);
  states.reset();
  EXPECT_EQ(states.find(5), kNoState);
  EXPECT_EQ(states.find(6), kNoState);
}

}  // namespace
}  // namespace octavo
