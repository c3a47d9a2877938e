// A request to a route of files or batches.
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

// Responds to the request. If it returns an error, the error is the response.
using Act = Result<> (*)(Call&);

struct Action {
  std::string_view method;
  std::string_view path;  // "{id}" is a placeholder for Call::id
  Act act;
};

// file_routes.cc
Result<> upload_file(Call&);
Result<> list_files(Call&);
Result<> show_file(Call&);
Result<> delete_file(Call&);
Result<> file_content(Call&);
// openai_batch_routes.cc
Result<> create_batch(Call&);
Result<> list_batches(Call&);
Result<> show_batch(Call&);
Result<> cancel_batch(Call&);
// message_batch_routes.cc
Result<> create_message_batch(Call&);
Result<> list_message_batches(Call&);
Result<> show_message_batch(Call&);
Result<> delete_message_batch(Call&);
Result<> cancel_message_batch(Call&);
Result<> message_batch_results(Call&);

void handle(Store& store, Worker& worker, const HostPtr& host,
            const std::shared_ptr<http::Exchange>& exchange);

void respond(const Call& call, const boost::json::object& body);
// Returns an integer parameter of the query, or `fallback` if it is missing. Errors: the value is not an
// integer in [1, max].
Result<std::int64_t> limit_of(const Call& call, std::int64_t fallback, std::int64_t max);
std::string query_of(const Call& call, std::string_view name);  // returns "" if the parameter is missing
// Returns the batch with current counts of lines.
Result<Batch> counted(Store& store, Batch batch);
// Requests the worker to end the batch. Errors: invalid_argument if the batch has already ended.
Result<Batch> cancel(Call& call, std::string_view protocol, std::string_view field);

}  // namespace octavo::batches
