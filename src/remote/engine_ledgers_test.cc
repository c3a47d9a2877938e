#include <gtest/gtest.h>

#include <cstring>
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

Request turn_of(const std::string& id, std::vector<TokenId> prompt) {
  Request request;
  request.prompt = std::move(prompt);
  request.session = SessionUse{.key = {"o", id}};
  return request;
}

TEST(SessionLedger, ANewEngineGetsTheSessionsInTheOrderOfTheirTurns) {
  constexpr std::int64_t kSecond = 1'000'000;
  SessionLedger ledger;
  for (const char* id : {"a", "b", "c", "a"}) ledger.turn_ended(turn_of(id, {1, 2}), {1, 2, 3}, kSecond);
  Request adapted = turn_of("d", {1});
  adapted.identity.adapter = "x";
  ledger.turn_ended(adapted, {1, 2}, kSecond);
  std::vector<Result<std::vector<SessionInfo>>> results;
  const auto run = [&](SessionCommand command) {
    const CommandSessions sent = ledger.add(command, [&](auto result) { results.push_back(std::move(result)); });
    ledger.take({.id = sent.id, .sessions = {{.key = command.key}}}, kSecond);
  };
  run({.verb = SessionVerb::pin, .key = {"o", "c"}, .ttl_s = 60});
  run({.verb = SessionVerb::fork, .key = {"o", "c"}, .fork_id = "f"});
  run({.verb = SessionVerb::release, .key = {"o", "b"}});
  const CommandSessions pending = ledger.add({.verb = SessionVerb::list, .key = {"o", ""}}, [](const auto&) {});
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
    ledger.turn_ended(turn_of(id, {1}), std::vector<TokenId>(SessionLedger::kTokensMax / 2, 1), 1);
  std::string frames;
  ledger.append_all(frames, 1);
  EXPECT_EQ(read_all(frames).size(), 2u);
}

}  // namespace
}  // namespace octavo::remote
