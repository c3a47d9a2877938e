#include "record/compare.h"

#include <algorithm>

#include "base/struct_json.h"

namespace octavo {
namespace {

bool was_aborted(const Record& record) {
  return std::ranges::any_of(record.answers, [](const RecordedAnswer& answer) {
    return answer.finish == name(FinishReason::abort);
  });
}

std::int64_t longest(const Record& record) {
  std::int64_t most = 0;
  for (const RecordedAnswer& answer : record.answers) most = std::max(most, answer.count);
  return most;
}

std::string token_difference(const RecordedAnswer& before, const RecordedAnswer& now, bool aborted) {
  const auto count = std::min(before.tokens.size(), now.tokens.size());
  const auto [first, other] = std::mismatch(
      before.tokens.begin(), before.tokens.begin() + static_cast<std::ptrdiff_t>(count), now.tokens.begin());
  const auto at = first - before.tokens.begin();
  if (at < static_cast<std::ptrdiff_t>(count))
    return fmt::format("answer {}: token {} is {}, but the record has {}", before.index, at, *other, *first);
  if (before.tokens.size() > now.tokens.size() || (!aborted && before.tokens.size() < now.tokens.size()))
    return fmt::format("answer {}: has {} tokens, but the record has {}", before.index, now.tokens.size(),
                       before.tokens.size());
  if (!aborted && before.finish != now.finish)
    return fmt::format("answer {}: ended because of {}, but the record has {}", before.index, now.finish,
                       before.finish);
  return "";
}

}  // namespace

Result<Request> replayed_request(const Record& record) {
  const auto impossible = [](std::string_view why) { return failure(ErrorCode::unsupported, "{}", why); };
  if (!record.request) return impossible("only hashes are recorded (--record-hashes-only)");
  if (std::ranges::any_of(record.request->media, [](const MediaPart& part) { return part.bytes.empty(); }))
    return impossible("images, videos, sounds and embeddings are recorded as hashes (--record-media)");
  for (const RecordedAnswer& answer : record.answers)
    if (answer.finish == name(FinishReason::error)) return impossible("the engine reported an error");
  Request request = *record.request;
  request.priority = 0;
  request.engine.reset();
  request.kv_transfer.reset();
  request.report_progress = false;
  if (!was_aborted(record)) return request;
  if (longest(record) == 0) return impossible("aborted before the first token");
  std::size_t begun = 0;
  for (const AnswerSoFar& answer : request.answers_so_far) begun = std::max(begun, answer.tokens.size());
  request.sampling.max_tokens = static_cast<int>(begun) + static_cast<int>(longest(record));
  return request;
}

std::string difference(const Record& record, const std::vector<RecordedAnswer>& now) {
  const bool aborted = was_aborted(record);
  const bool pools = record.request && record.request->task != Task::generate;
  for (const RecordedAnswer& before : record.answers) {
    const auto found = std::ranges::find(now, before.index, &RecordedAnswer::index);
    if (found == now.end()) return fmt::format("answer {}: missing", before.index);
    if (pools && !aborted && found->hash != before.hash)
      return fmt::format("answer {}: the log-probabilities have a different hash", before.index);
    if (std::string text = token_difference(before, *found, aborted); !text.empty()) return text;
  }
  return "";
}

std::string reasons(const Record& record, const EngineIdentity& engine, const std::string& adapter) {
  std::string out;
  const auto add = [&out](std::string_view what, const std::string& before, const std::string& now) {
    if (before == now) return;
    out += fmt::format("{}other {}: {}, recorded {}", out.empty() ? "" : "; ", what,
                       now.empty() ? "none" : now, before.empty() ? "none" : before);
  };
  std::vector<std::string> recorded;
  const auto keep = [&](std::string_view, const std::string& value) { recorded.push_back(value); };
  struct_json::for_each_field(record.engine, keep);
  auto before = recorded.begin();
  const auto compare = [&](std::string_view field, const std::string& value) {
    add(field, *before++, value);
  };
  struct_json::for_each_field(engine, compare);
  add("adapter", record.adapter, adapter);
  if (record.request && record.request->kv_transfer && record.request->kv_transfer->do_remote_prefill)
    out += fmt::format("{}KV blocks of another engine", out.empty() ? "" : "; ");
  return out.empty() ? "no reason is known" : out;
}

}  // namespace octavo
