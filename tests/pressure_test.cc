// Many clients share a KV pool that is only a little larger than the longest request.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "rig.h"

namespace octavo {
namespace {

constexpr int kClients = 64;
constexpr int kLongest = kPromptTokensMax + kOutputTokensMax;
constexpr int kBlock = 16;
// 1.2 times the blocks of the longest request
constexpr int kPoolBlocks = (kLongest + kBlock - 1) / kBlock * 12 / 10;
// limit for one sequence: after three preemptions it is not preempted again; one more is tolerated
constexpr int kPreemptionsMax = 4;

RigOptions tight() {
  RigOptions options;
  options.threads = 2;
  options.num_blocks = kPoolBlocks;
  options.max_num_batched_tokens = 128;
  return options;
}

int answer_count(const std::vector<Request>& requests) {
  int answers = 0;
  for (const Request& request : requests) answers += request.sampling.n;
  return answers;
}

TEST(Pressure, AllClientsGetTheirOwnAnswersOnATightPool) {
  Rig roomy({.threads = 2});
  const std::vector<Request> requests = random_requests(roomy, kClients, 11);
  const std::vector<Answers> alone = roomy.run_alone(requests);

  Rig rig(tight());
  std::vector<Answers> answers(requests.size());
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < requests.size(); ++i)
    clients.emplace_back([&, i] { answers[i] = rig.submit(requests[i])->wait(); });
  for (std::thread& client : clients) client.join();

  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers[i], alone[i]) << "request " << i;
  const EngineStats stats = rig.idle_stats();
  EXPECT_LE(stats.preemptions, std::int64_t{kPreemptionsMax} * answer_count(requests));
  EXPECT_EQ(stats.blocks.used, 0);
  EXPECT_EQ(stats.requests.unfinished, 0);
  EXPECT_EQ(stats.requests.bytes, 0);
}

TEST(Pressure, AbortsAtRandomMomentsLeaveNothingBehind) {
  Rig rig(tight());
  Rig roomy({.threads = 2});
  const std::vector<Request> requests = random_requests(roomy, kClients, 12);
  std::mt19937 random(5);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<Ticket>> tickets;
    for (const Request& request : requests) {
      tickets.push_back(rig.submit(request));
      if (random() % 2 == 0) rig.engine().abort(tickets[random() % tickets.size()]->id);
      if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 10));
    }
    for (const auto& ticket : tickets) ticket->wait();
    const EngineStats stats = rig.idle_stats();
    EXPECT_EQ(stats.blocks.used, 0);
    EXPECT_EQ(stats.requests.unfinished, 0);
    EXPECT_EQ(stats.requests.running + stats.requests.waiting, 0);
  }
}

}  // namespace
}  // namespace octavo
