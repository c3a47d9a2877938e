// Routes of Anthropic's message batches: /v1/messages/batches.
#include <fmt/chrono.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <unordered_set>
#include <utility>

#include "base/exact_json.h"
#include "batches/calls.h"
#include "batches/content.h"
#include "batches/line.h"
#include "openai/request_fields.h"

namespace octavo::batches {

namespace json = boost::json;

namespace {

constexpr std::string_view kEndpoint = "/v1/messages";
constexpr std::size_t kIdMax = 64;

json::value date_json(std::int64_t seconds) {
  if (seconds == 0) return nullptr;
  return json::value(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds))));
}

json::object message_batch_json(const Batch& batch) {
  const std::int64_t left = batch.total - batch.completed - batch.failed;
  const auto left_if = [&](bool so) { return so ? left : 0; };
  json::object out{{"id", batch.id},
                   {"type", "message_batch"},
                   {"processing_status", batch.ended()             ? "ended"
                                         : batch.cancelling_at > 0 ? "canceling"
                                                                   : "in_progress"},
                   {"request_counts",
                    {{"processing", left_if(!batch.ended())},
                     {"succeeded", batch.completed},
                     {"errored", batch.failed},
                     {"canceled", left_if(batch.status == kCancelled)},
                     {"expired", left_if(batch.status == kExpired)}}},
                   {"created_at", date_json(batch.created_at)},
                   {"expires_at", date_json(batch.expires_at())},
                   {"ended_at", date_json(batch.ended_at)},
                   {"cancel_initiated_at", date_json(batch.cancelling_at)},
                   {"archived_at", nullptr},
                   {"results_url", nullptr}};
  // The URL has no host, because clients behind a gateway use a different address.
  if (batch.ended()) out["results_url"] = fmt::format("/v1/messages/batches/{}/results", batch.id);
  return out;
}

bool is_custom_id(std::string_view id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !id.empty() && id.size() <= kIdMax && std::ranges::all_of(id, allowed);
}

// Converts the requests of a batch to lines in OpenAI's format.
Result<std::string> input_of(const json::array& requests) {
  std::string input;
  std::unordered_set<std::string> ids;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string field = fmt::format("requests[{}]", i);
    if (!requests[i].is_object()) return invalid(field, "must be an object");
    openai::Fields fields(requests[i].get_object(), field + ".");
    std::string id;
    TRY_VOID(fields.text("custom_id", id));
    if (!is_custom_id(id))
      return invalid(field + ".custom_id", "must have 1 to {} letters, digits, _ and -", kIdMax);
    if (!ids.insert(id).second) return invalid(field + ".custom_id", "the custom_id {} occurs twice", id);
    TRY(const json::object* params, fields.object("params"));
    if (!params) return invalid(field + ".params", "is missing");
    const std::string line = exact_json_text(
        json::object{{"custom_id", id}, {"method", "POST"}, {"url", kEndpoint}, {"body", *params}});
    if (const auto read = read_line(line, id); !read)
      return invalid(field + ".params", "{}: {}", read.error().field, read.error().message);
    input += line + "\n";
  }
  return input;
}

}  // namespace

Result<> create_message_batch(Call& call) {
  TRY(const json::object body, openai::parse_body(call.exchange->take_body()));
  openai::Fields fields(body);
  TRY(const json::array* requests, fields.array("requests"));
  const std::size_t count = requests ? requests->size() : 0;
  if (count == 0 || count > static_cast<std::size_t>(kLinesMax))
    return invalid("requests", "must have 1 to {} entries, got {}", kLinesMax, count);
  if (const auto unread = fields.unread(); !unread.empty())
    return invalid(unread.front(), "is not a field of a message batch");
  TRY(const std::string input, input_of(*requests));

  const std::int64_t now = unix_time();
  StoredFile file{.id = "file-" + random_hex(), .owner = call.owner, .purpose = std::string(kMessages)};
  file.created_at = now;
  TRY(file, call.store.add_file(std::move(file), input));
  Batch batch{.id = "msgbatch_" + random_hex(), .owner = call.owner, .protocol = std::string(kAnthropic)};
  batch.status = kValidating;
  batch.endpoint = kEndpoint;
  batch.input_file = file.id;
  batch.created_at = now;
  batch.total = static_cast<std::int64_t>(count);
  auto added = call.store.add_batch(std::move(batch));
  if (!added) {
    (void)call.store.discard_file(file.id);  // clients cannot see or delete a file with purpose kMessages
    return std::unexpected(added.error());
  }
  batch = *std::move(added);
  call.worker.wake();
  respond(call, message_batch_json(batch));
  return {};
}

Result<> list_message_batches(Call& call) {
  PageOf page{.after = query_of(call, "after_id"), .before = query_of(call, "before_id")};
  if (!page.after.empty() && !page.before.empty())
    return invalid("before_id", "cannot be combined with after_id");
  TRY(page.limit, limit_of(call, 20, 1'000));
  TRY(Page<Batch> batches, call.store.batches(call.owner, kAnthropic, page));
  json::array data;
  json::object out{{"has_more", batches.has_more}, {"first_id", nullptr}, {"last_id", nullptr}};
  for (Batch& batch : batches.records) {
    if (data.empty()) out["first_id"] = batch.id;
    out["last_id"] = batch.id;
    TRY(batch, counted(call.store, std::move(batch)));
    data.push_back(message_batch_json(batch));
  }
  out["data"] = std::move(data);
  respond(call, out);
  return {};
}

Result<> show_message_batch(Call& call) {
  TRY(Batch batch, call.store.batch(call.owner, kAnthropic, call.id));
  TRY(batch, counted(call.store, std::move(batch)));
  respond(call, message_batch_json(batch));
  return {};
}

Result<> delete_message_batch(Call& call) {
  TRY(const Batch batch, call.store.batch(call.owner, kAnthropic, call.id));
  TRY_VOID(call.store.remove_batch(batch));
  respond(call, {{"id", call.id}, {"type", "message_batch_deleted"}});
  return {};
}

Result<> cancel_message_batch(Call& call) {
  TRY(const Batch batch, cancel(call, kAnthropic, "message_batch_id"));
  respond(call, message_batch_json(batch));
  return {};
}

Result<> message_batch_results(Call& call) {
  TRY(const Batch batch, call.store.batch(call.owner, kAnthropic, call.id));
  if (!batch.ended())
    return invalid("message_batch_id", "{} has not ended yet: wait until processing_status is ended",
                   batch.id);
  if (batch.output_file.empty()) return failure(ErrorCode::not_found, "{} has no results", batch.id);
  return send_file(call.host, call.exchange, call.store.path_of(batch.output_file), "application/x-jsonl");
}

}  // namespace octavo::batches
