// The HTTP requests of the file and batch APIs, and the functions that respond to them.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "batches/host.h"
#include "batches/store.h"
#include "batches/worker.h"
#include "http/exchange.h"

namespace octavo::batches {

struct Call {
  Store& store;
  Worker& worker;
  const HostPtr& host;
  const std::shared_ptr<http::Exchange>& exchange;
  std::string owner;
  std::string id;  // "" if the path has no id
};

// Handles a request. If the function returns an error, handle() sends the error as the response.
using Act = Result<> (*)(Call&);

struct Action {
  std::string_view method;
  std::string_view path;  // "{id}" matches Call::id
  Act act;
};

Result<> upload_file(Call&);
Result<> list_files(Call&);
Result<> show_file(Call&);
Result<> delete_file(Call&);
Result<> file_content(Call&);
Result<> create_batch(Call&);
Result<> list_batches(Call&);
Result<> show_batch(Call&);
Result<> cancel_batch(Call&);
Result<> create_message_batch(Call&);
Result<> list_message_batches(Call&);
Result<> show_message_batch(Call&);
Result<> delete_message_batch(Call&);
Result<> cancel_message_batch(Call&);
Result<> message_batch_results(Call&);

void handle(Store& store, Worker& worker, const HostPtr& host,
            const std::shared_ptr<http::Exchange>& exchange);

void respond(const Call& call, const boost::json::object& body);
// Returns an integer query parameter, or `fallback` if the parameter is missing. Returns an error if the
// value is not an integer in [1, max].
Result<std::int64_t> limit_of(const Call& call, std::int64_t fallback, std::int64_t max);
std::string query_of(const Call& call, std::string_view name);
// Returns the batch with the current counts of completed and failed lines.
Result<Batch> counted(Store& store, Batch batch);
// Tells the worker to end the batch. Returns invalid_argument if the batch has already ended.
Result<Batch> cancel(Call& call, std::string_view protocol, std::string_view field);

}  // namespace octavo::batches
