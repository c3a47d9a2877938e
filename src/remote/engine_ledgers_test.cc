#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "remote/adapter_ledger.h"
#include "remote/pause_ledger.h"
#include "remote/session_ledger.h"

namespace octavo::remote {
namespace {

struct NoOutputs final : OutputSink {
  void deliver(Output&&) noexcept override {}
};

std::vector<ToEngine> read_all(std::string_view frames) {
  std::vector<ToEngine> all;
  while (!frames.empty()) {
    std::uint32_t size = 0;
    std::memcpy(&size, frames.data(), sizeof size);
    all.push_back(read_to_engine(frames.substr(sizeof size, size)).value());
    frames.remove_prefix(sizeof size + size);
  }
  return all;
}

// Returns the adapters that a new engine gets, with the numbers of their commands.
std::vector<std::pair<std::string, std::uint64_t>> adapters_of(AdapterLedger& ledger,
                                                               const UnfinishedRequests& requests) {
  std::string frames;
  ledger.append_all(frames, requests);
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for (const ToEngine& message : read_all(frames))
    all.emplace_back(std::get<ChangeAdapter>(message).source.name, std::get<ChangeAdapter>(message).id);
  return all;
}

TEST(AdapterLedger, ANewEngineGetsLoadedAdaptersAndPendingCommands) {
  UnfinishedRequests requests([](int) {});
  AdapterLedger ledger;
  std::vector<Result<>> results;
  const auto record = [&](Result<> result) { results.push_back(std::move(result)); };
  const auto a = ledger.add({.source = {"a", "/a"}}, record), b = ledger.add({.source = {"b", "/b"}}, record);
  ledger.take({.id = a.id, .error = {}}, requests);
  EXPECT_EQ(results.size(), 1u);
  using Sent = std::vector<std::pair<std::string, std::uint64_t>>;
  EXPECT_EQ(adapters_of(ledger, requests), (Sent{{"a", 0}, {"b", b.id}}));
  ledger.take({.id = b.id, .error = Error{ErrorCode::corrupt, "no", {}}}, requests);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[1]);
  EXPECT_EQ(adapters_of(ledger, requests), (Sent{{"a", 0}}));
}

TEST(AdapterLedger, UnloadedAdaptersStayWhileRequestsUseThem) {
  UnfinishedRequests requests([](int) {});
  Request request;
  request.prompt = {1};
  request.identity.adapter = "a";
  requests.add(1, std::move(request), std::make_shared<NoOutputs>(), 0);
  AdapterLedger ledger;
  const auto change = [&](bool unload) {
    const auto sent = ledger.add({.source = {"a", "/a"}, .unload = unload}, [](const Result<>&) {});
    ledger.take({.id = sent.id, .error = {}}, requests);
  };
  change(false);
  change(true);
  EXPECT_EQ(adapters_of(ledger, requests).size(), 1u);
  requests.end_all({ErrorCode::unavailable, "stopped", {}});
  EXPECT_TRUE(adapters_of(ledger, requests).empty());
}

TEST(PauseLedger, APauseInForceIsSentBeforeRequestsAndAPendingOneAfter) {
  PauseLedger ledger;
  std::vector<Result<>> results;
  const auto record = [&](Result<> result) { results.push_back(std::move(result)); };
  const auto sent = [&] {
    std::string before, after;
    ledger.append_before_requests(before);
    ledger.append_after_requests(after);
    return std::pair(read_all(before).size(), read_all(after).size());
  };
  const Pause pause = ledger.add(PauseMode::keep, record);
  EXPECT_EQ(sent(), std::pair(std::size_t{0}, std::size_t{1}));
  ledger.take({.id = pause.id, .error = {}});
  EXPECT_EQ(sent(), std::pair(std::size_t{1}, std::size_t{0}));
  (void)ledger.add(PauseMode::wait, record);
  ledger.resume();
  EXPECT_EQ(sent(), std::pair(std::size_t{0}, std::size_t{0}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0]);
  EXPECT_EQ(results[1].error().message, "the engine was resumed before it paused");
}

constexpr std::int64_t kSecond = 1'000'000;

Request turn_of(const std::string& id, std::vector<TokenId> prompt) {
  Request request;
  request.prompt = std::move(prompt);
  request.session = SessionUse{.key = {"o", id}};
  return request;
}

TEST(SessionLedger, ANewEngineGetsTheSessionsInTheOrderOfTheirTurns) {
  SessionLedger ledger;
  for (const char* id : {"a", "b", "c", "a"}) ledger.turn_ended(turn_of(id, {1, 2}), {1, 2, 3}, 1, kSecond);
  Request adapted = turn_of("d", {1});
  adapted.identity.adapter = "x";
  ledger.turn_ended(adapted, {1, 2}, 1, kSecond);
  std::vector<Result<std::vector<SessionInfo>>> results;
  const auto run = [&](SessionCommand command) {
    const CommandSessions sent =
        ledger.add(command, [&](auto result) { results.push_back(std::move(result)); });
    ledger.take({.id = sent.id, .sessions = {{.key = command.key}}}, kSecond);
  };
  run({.verb = SessionVerb::pin, .key = {"o", "c"}, .ttl_s = 60});
  run({.verb = SessionVerb::fork, .key = {"o", "c"}, .fork_id = "f"});
  run({.verb = SessionVerb::release, .key = {"o", "b"}});
  const CommandSessions pending =
      ledger.add({.verb = SessionVerb::list, .key = {"o", ""}}, [](const auto&) {});
  std::string frames;
  ledger.append_all(frames, 11 * kSecond);
  std::vector<std::pair<std::string, int>> restored;
  for (const ToEngine& message : read_all(frames)) {
    const auto& sent = std::get<CommandSessions>(message);
    if (sent.id == pending.id) continue;
    EXPECT_EQ(sent.command.verb, SessionVerb::restore);
    EXPECT_EQ(sent.command.text->tokens, (std::vector<TokenId>{1, 2, 3}));
    restored.emplace_back(sent.command.key.id, sent.command.text->pin_ttl_s);
  }
  EXPECT_EQ(restored, (std::vector<std::pair<std::string, int>>{{"c", 50}, {"a", 0}, {"f", 0}}));
  EXPECT_EQ(results.size(), 3u);
}

TEST(SessionLedger, ForgetsTheOldestTexts) {
  SessionLedger ledger;
  for (const char* id : {"a", "b", "c"})
    ledger.turn_ended(turn_of(id, {1}), std::vector<TokenId>(SessionLedger::kTokensMax / 2, 1), 1, 1);
  std::string frames;
  ledger.append_all(frames, 1);
  EXPECT_EQ(read_all(frames).size(), 2u);
}

// A session that a new engine gets.
struct Restored {
  std::string id;
  std::int64_t idle_s = 0;
  int ttl_s = 0, pin_ttl_s = 0;
  bool operator==(const Restored&) const = default;
  friend void PrintTo(const Restored& r, std::ostream* out) {
    *out << r.id << " idle " << r.idle_s << " ttl " << r.ttl_s << " pin " << r.pin_ttl_s;
  }
};

// A ledger, and turns and commands at a time in seconds.
struct LedgerDesk {
  void turn(const std::string& id, std::int64_t at_s, SessionUse use = {}, std::int64_t arrived_s = -1) {
    Request request;
    request.prompt = {1};
    use.key = {"o", id};
    request.session = use;
    ledger.turn_ended(request, {1, 2}, (arrived_s < 0 ? at_s : arrived_s) * kSecond, at_s * kSecond);
  }
  void run(SessionVerb verb, const std::string& id, std::int64_t at_s, const std::string& fork_id = "") {
    const CommandSessions sent =
        ledger.add({.verb = verb, .key = {"o", id}, .fork_id = fork_id}, [](const auto&) {});
    ledger.take({.id = sent.id, .sessions = {{.key = {"o", id}}}}, at_s * kSecond);
  }
  std::vector<Restored> restored(std::int64_t at_s) const {
    std::string frames;
    ledger.append_all(frames, at_s * kSecond);
    std::vector<Restored> all;
    for (const ToEngine& message : read_all(frames)) {
      const SessionCommand& command = std::get<CommandSessions>(message).command;
      all.push_back(
          {command.key.id, command.text->idle_us / kSecond, command.ttl_s, command.text->pin_ttl_s});
    }
    return all;
  }

  SessionLedger ledger{{.sessions_max = 3, .ttl_s = 100}};
};

// The engine has ended the session b, because its time was over.
TEST(SessionLedger, AForkReplacesASessionOfTheSameName) {
  LedgerDesk desk;
  desk.turn("b", 10, {.ttl_s = 1});
  desk.turn("a", 10);
  desk.run(SessionVerb::fork, "a", 13, "b");
  EXPECT_EQ(desk.restored(15), (std::vector<Restored>{{"a", 5, 0, 0}, {"b", 2, 0, 0}}));
  desk.run(SessionVerb::release, "b", 16);
  EXPECT_EQ(desk.restored(20), (std::vector<Restored>{{"a", 10, 0, 0}}));
}

TEST(SessionLedger, ATextAboveTheLimitIsForgotten) {
  SessionLedger ledger;
  ledger.turn_ended(turn_of("a", {1}), std::vector<TokenId>(SessionLedger::kTokensMax + 1, 1), 1, 1);
  std::string frames;
  ledger.append_all(frames, 1);
  EXPECT_EQ(frames, "");
}

TEST(SessionLedger, KeepsTheNewestNames) {
  LedgerDesk desk;
  for (const char* id : {"a", "b", "c", "a", "d"}) desk.turn(id, 10);
  EXPECT_EQ(desk.restored(10), (std::vector<Restored>{{"c", 0, 0, 0}, {"a", 0, 0, 0}, {"d", 0, 0, 0}}));
}

TEST(SessionLedger, SessionsWhoseTimeIsOverStayEnded) {
  LedgerDesk desk;
  desk.turn("default", 10);
  desk.turn("short", 10, {.ttl_s = 5});
  desk.turn("pinned", 10, {.ttl_s = 5, .pin = true});
  EXPECT_EQ(desk.restored(14),
            (std::vector<Restored>{{"default", 4, 0, 0}, {"short", 4, 5, 0}, {"pinned", 4, 5, 1}}));
  EXPECT_EQ(desk.restored(15), (std::vector<Restored>{{"default", 5, 0, 0}}));
  EXPECT_TRUE(desk.restored(110).empty());
  desk.turn("short", 20);  // a new session of this name
  EXPECT_EQ(desk.restored(20).back(), (Restored{"short", 0, 0, 0}));
}

TEST(SessionLedger, ARequestDoesNotReviveASessionThatEndedMeanwhile) {
  LedgerDesk desk;
  desk.run(SessionVerb::release, "first", 12);
  desk.turn("first", 14, {}, 10);
  desk.turn("a", 10);
  desk.run(SessionVerb::release, "a", 12);
  desk.turn("a", 14, {}, 11);
  EXPECT_TRUE(desk.restored(15).empty());
  desk.turn("a", 16, {}, 13);
  EXPECT_EQ(desk.restored(16), (std::vector<Restored>{{"a", 0, 0, 0}}));
}

TEST(SessionLedger, LaterPinsExtendTheFirst) {
  LedgerDesk desk;
  desk.turn("a", 10, {.ttl_s = 60, .pin = true});
  desk.turn("a", 40, {.ttl_s = 60, .pin = true});
  EXPECT_EQ(desk.restored(40), (std::vector<Restored>{{"a", 0, 60, 60}}));
  desk.turn("a", 50, {.ttl_s = 5, .pin = true});
  EXPECT_EQ(desk.restored(50), (std::vector<Restored>{{"a", 0, 5, 50}}));
}

TEST(SessionLedger, AnEmptiedCacheEndsPins) {
  LedgerDesk desk;
  desk.turn("a", 10, {.pin = true});
  EXPECT_EQ(desk.restored(10).front().pin_ttl_s, 100);
  desk.ledger.cache_emptied();
  EXPECT_EQ(desk.restored(10).front().pin_ttl_s, 0);
}

}  // namespace
}  // namespace octavo::remote
