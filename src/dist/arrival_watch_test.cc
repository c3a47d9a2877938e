#include "dist/arrival_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <semaphore>

namespace octavo {
namespace {

TEST(ArrivalWatch, ReportsDataAndTheEndOnceAfterEachArm) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Socket own(ends[0]), peer(ends[1]);
  std::counting_semaphore<> calls(0);
  auto watch = ArrivalWatch::start(std::span(&ends[0], 1), [&] { calls.release(); }).value();
  char byte = 'x';
  ASSERT_EQ(write(peer.fd(), &byte, 1), 1);
  EXPECT_FALSE(calls.try_acquire()) << "it is not armed";
  watch->arm();  // also reports data that arrived before this call
  calls.acquire();
  ASSERT_EQ(write(peer.fd(), &byte, 1), 1);
  EXPECT_FALSE(calls.try_acquire()) << "one call for each arm";
  char both[2];
  ASSERT_EQ(read(own.fd(), both, 2), 2);
  watch->arm();
  peer = Socket();
  calls.acquire();
  watch.reset();  // Ends the watch's thread, so that late calls have been counted.
  EXPECT_FALSE(calls.try_acquire()) << "two arms, two calls";
}

}  // namespace
}  // namespace octavo
