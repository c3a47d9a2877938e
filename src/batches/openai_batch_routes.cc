// Routes of OpenAI's batches: /v1/batches.
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/quoted_text.h"
#include "batches/calls.h"
#include "batches/line.h"
#include "openai/request_fields.h"
#include "openai/routes.h"

namespace octavo::batches {

namespace json = boost::json;

namespace {

constexpr std::size_t kMetadataMax = 16, kMetadataKeyMax = 64, kMetadataValueMax = 512;

json::value time_json(std::int64_t seconds) {
  return seconds > 0 ? json::value(seconds) : json::value(nullptr);
}
json::value id_json(const std::string& id) { return id.empty() ? json::value(nullptr) : json::value(id); }

json::object batch_json(const Batch& batch) {
  const auto at_end = [&](std::string_view status) {
    return time_json(batch.status == status ? batch.ended_at : 0);
  };
  json::object out{
      {"id", batch.id},
      {"object", "batch"},
      {"endpoint", batch.endpoint},
      {"errors", nullptr},
      {"input_file_id", batch.input_file},
      {"completion_window", "24h"},
      {"status", batch.status},
      {"output_file_id", id_json(batch.output_file)},
      {"error_file_id", id_json(batch.error_file)},
      {"created_at", batch.created_at},
      {"in_progress_at", time_json(batch.in_progress_at)},
      {"expires_at", batch.expires_at()},
      {"finalizing_at", time_json(batch.finalizing_at)},
      {"completed_at", at_end(kCompleted)},
      {"failed_at", at_end(kFailed)},
      {"expired_at", at_end(kExpired)},
      {"cancelling_at", time_json(batch.cancelling_at)},
      {"cancelled_at", at_end(kCancelled)},
      {"request_counts", {{"total", batch.total}, {"completed", batch.completed}, {"failed", batch.failed}}},
      {"metadata", nullptr}};
  if (!batch.errors.empty())
    out["errors"] = json::object{{"object", "list"}, {"data", json::parse(batch.errors)}};
  if (!batch.metadata.empty()) out["metadata"] = json::parse(batch.metadata);
  return out;
}

// Returns an error unless batches can use the endpoint: an OpenAI route under /v1 or /v2 that generates text
// or pools.
Result<> check_endpoint(const std::string& endpoint) {
  std::string known;
  for (const openai::Route& route : openai::routes()) {
    const bool fits = (route.generates() || route.pooled) && route.protocol == openai::Protocol::openai &&
                      route.path.starts_with("/v");
    if (fits && route.path == endpoint) return {};
    if (fits) known += (known.empty() ? "" : ", ") + std::string(route.path);
  }
  return invalid("endpoint", "must be one of {}; got {}", known, quoted_text(endpoint.substr(0, 100)));
}

Result<std::string> read_metadata(openai::Fields& fields) {
  TRY(const json::object* metadata, fields.object("metadata"));
  if (!metadata) return "";
  if (metadata->size() > kMetadataMax)
    return invalid("metadata", "must have at most {} entries, got {}", kMetadataMax, metadata->size());
  for (const auto& [key, value] : *metadata)
    if (key.size() > kMetadataKeyMax || !value.is_string() || value.get_string().size() > kMetadataValueMax)
      return invalid("metadata",
                     "must have keys of at most {} bytes, and strings of at most {} bytes as values",
                     kMetadataKeyMax, kMetadataValueMax);
  return json::serialize(*metadata);
}

Result<std::int64_t> read_lifetime(openai::Fields& fields) {
  TRY(const json::object* expires, fields.object("output_expires_after"));
  std::int64_t seconds = 0;
  if (!expires) return seconds;
  openai::Fields of_expires(*expires, "output_expires_after.");
  std::string anchor = "created_at";
  TRY_VOID(of_expires.text("anchor", anchor));
  TRY_VOID(of_expires.integer64("seconds", seconds));
  if (anchor != "created_at") return invalid("output_expires_after.anchor", "must be created_at");
  if (seconds < 3'600 || seconds > 30 * 86'400)
    return invalid("output_expires_after.seconds", "must be from 3600 to 2592000, got {}", seconds);
  return seconds;
}

}  // namespace

Result<> create_batch(Call& call) {
  TRY(const json::object body, openai::parse_body(call.exchange->take_body()));
  openai::Fields fields(body);
  Batch batch{.id = "batch_" + random_hex(), .owner = call.owner, .protocol = std::string(kOpenai)};
  batch.status = kValidating;
  TRY_VOID(fields.text("input_file_id", batch.input_file));
  TRY_VOID(fields.text("endpoint", batch.endpoint));
  std::string window = "24h";
  TRY_VOID(fields.text("completion_window", window));
  if (window != "24h")
    return invalid("completion_window", "must be 24h, got {}", quoted_text(window.substr(0, 100)));
  TRY(batch.metadata, read_metadata(fields));
  TRY(batch.output_keep_s, read_lifetime(fields));
  if (const auto unread = fields.unread(); !unread.empty())
    return invalid(unread.front(), "is not a field of a batch");
  TRY_VOID(check_endpoint(batch.endpoint));
  if (const auto file = call.store.file(call.owner, batch.input_file); !file)
    return field_failure("input_file_id", file.error().code, "{}", file.error().message);
  batch.created_at = unix_time();
  TRY(batch, call.store.add_batch(std::move(batch)));
  call.worker.wake();
  respond(call, batch_json(batch));
  return {};
}

Result<> list_batches(Call& call) {
  PageOf page{.after = query_of(call, "after")};
  TRY(page.limit, limit_of(call, 20, 100));
  TRY(Page<Batch> batches, call.store.batches(call.owner, kOpenai, page));
  json::array data;
  json::object out{
      {"object", "list"}, {"has_more", batches.has_more}, {"first_id", nullptr}, {"last_id", nullptr}};
  for (Batch& batch : batches.records) {
    if (data.empty()) out["first_id"] = batch.id;
    out["last_id"] = batch.id;
    TRY(batch, counted(call.store, std::move(batch)));
    data.push_back(batch_json(batch));
  }
  out["data"] = std::move(data);
  respond(call, out);
  return {};
}

Result<> show_batch(Call& call) {
  TRY(Batch batch, call.store.batch(call.owner, kOpenai, call.id));
  TRY(batch, counted(call.store, std::move(batch)));
  respond(call, batch_json(batch));
  return {};
}

Result<> cancel_batch(Call& call) {
  TRY(const Batch batch, cancel(call, kOpenai, "batch_id"));
  respond(call, batch_json(batch));
  return {};
}

}  // namespace octavo::batches
