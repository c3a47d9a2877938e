// Requests to the routes of files and batches: a table of methods and paths.
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
  std::string id;  // id in the path; "": the path has no id
};

// Answers the request. A returned error becomes the answer.
using Act = Result<> (*)(Call&);

struct Action {
  std::string_view method;
  std::string_view path;  // "{id}" stands for Call::id
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

// Selects the action by method and path, and runs it.
void handle(Store& store, Worker& worker, const HostPtr& host,
            const std::shared_ptr<http::Exchange>& exchange);

// --- Functions that several actions use ---

void respond(const Call& call, const boost::json::object& body);
// An integer parameter of the query; `fallback` if it is missing. Errors: not an integer in [1, max].
Result<std::int64_t> limit_of(const Call& call, std::int64_t fallback, std::int64_t max);
std::string query_of(const Call& call, std::string_view name);  // "" if the parameter is missing
// The batch with current counts.
Result<Batch> counted(Store& store, Batch batch);
// Tells the worker to end the batch. Errors: invalid_argument if the batch has already ended.
Result<Batch> cancel(Call& call, std::string_view protocol, std::string_view field);

}  // namespace octavo::batches
