#include "batches/calls.h"

#include <boost/json/serialize.hpp>
#include <charconv>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/quoted_text.h"
#include "http/target.h"
#include "openai/anthropic_errors.h"
#include "openai/errors.h"

namespace octavo::batches {
namespace {

constexpr Action kActions[] = {
    {"POST", "/v1/files", upload_file},
    {"GET", "/v1/files", list_files},
    {"GET", "/v1/files/{id}", show_file},
    {"DELETE", "/v1/files/{id}", delete_file},
    {"GET", "/v1/files/{id}/content", file_content},
    {"POST", "/v1/batches", create_batch},
    {"GET", "/v1/batches", list_batches},
    {"GET", "/v1/batches/{id}", show_batch},
    {"POST", "/v1/batches/{id}/cancel", cancel_batch},
    {"POST", "/v1/messages/batches", create_message_batch},
    {"GET", "/v1/messages/batches", list_message_batches},
    {"GET", "/v1/messages/batches/{id}", show_message_batch},
    {"DELETE", "/v1/messages/batches/{id}", delete_message_batch},
    {"POST", "/v1/messages/batches/{id}/cancel", cancel_message_batch},
    {"GET", "/v1/messages/batches/{id}/results", message_batch_results},
};

// Matches a path with a pattern such as "/v1/files/{id}". Returns the id in the path, or "" if the pattern
// has no {id}. Returns nullopt if the path does not match.
std::optional<std::string> match(std::string_view form, std::string_view path) {
  constexpr std::string_view kId = "{id}";
  const std::size_t at = form.find(kId);
  if (at == std::string_view::npos) return path == form ? std::optional<std::string>("") : std::nullopt;
  const std::string_view end = form.substr(at + kId.size());
  if (path.size() <= form.size() - kId.size() || !path.starts_with(form.substr(0, at)) ||
      !path.ends_with(end))
    return std::nullopt;
  const std::string_view id = path.substr(at, path.size() - at - end.size());
  if (id.find('/') != std::string_view::npos) return std::nullopt;
  return std::string(id);
}

}  // namespace

std::string owner_of(std::string_view tenant) {
  if (tenant.empty()) return "";
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(tenant)), 0);
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

void handle(Store& store, Worker& worker, const HostPtr& host,
            const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  const std::string_view path = std::string_view(request.path).substr(request.path.rfind("/v1/"));
  const bool anthropic = path.starts_with("/v1/messages/");
  const auto refuse = [&](const Error& error) {
    exchange->respond(anthropic ? anthropic::error_response(error) : openai::error_response(error));
  };
  std::string methods;
  for (const Action& action : kActions) {
    auto id = match(action.path, path);
    if (!id) continue;
    if (action.method != request.method) {
      methods += (methods.empty() ? "" : ", ") + std::string(action.method);
      continue;
    }
    Call call{store, worker, host, exchange, owner_of(host->tenant_of(request)), *std::move(id)};
    if (const auto done = action.act(call); !done) refuse(done.error());
    return;
  }
  if (methods.empty())
    return refuse({ErrorCode::not_found,
                   fmt::format("the route {} does not exist", quoted_text(path.substr(0, 100))),
                   {}});
  const std::string message = fmt::format("{} is not allowed for {}: use {}", request.method,
                                          quoted_text(path.substr(0, 100)), methods);
  http::Response response = openai::error_response(405, message);
  if (anthropic) response.body = anthropic::error_json(405, message);
  response.headers.add("Allow", methods);
  exchange->respond(std::move(response));
}

void respond(const Call& call, const boost::json::object& body) {
  call.exchange->respond({.body = boost::json::serialize(body)});
}

std::string query_of(const Call& call, std::string_view name) {
  return http::query_value(call.exchange->request().query, name).value_or("");
}

Result<std::int64_t> limit_of(const Call& call, std::int64_t fallback, std::int64_t max) {
  const std::string text = query_of(call, "limit");
  if (text.empty()) return fallback;
  std::int64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc{} || end != text.data() + text.size() || limit < 1 || limit > max)
    return invalid("limit", "must be an integer from 1 to {}, got {}", max, quoted_text(text.substr(0, 100)));
  return limit;
}

Result<Batch> counted(Store& store, Batch batch) {
  if (batch.ended()) return batch;
  TRY(const AnswerCounts counts, store.counts(batch.id));
  batch.completed = counts.completed;
  batch.failed = counts.failed;
  return batch;
}

Result<Batch> cancel(Call& call, std::string_view protocol, std::string_view field) {
  TRY_VOID(call.store.batch(call.owner, protocol, call.id));
  TRY(const Batch batch, call.store.change(call.id, [&](Batch& now) -> Result<> {
    if (now.ended() || now.status == kFinalizing)
      return invalid(field, "{} is {}: only an unfinished batch can be cancelled", now.id, now.status);
    if (now.cancelling_at == 0) now.cancelling_at = unix_time();
    now.status = kCancelling;
    return {};
  }));
  call.worker.wake();
  return counted(call.store, batch);
}

}  // namespace octavo::batches
