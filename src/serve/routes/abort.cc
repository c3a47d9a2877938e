// /inference/v1/abort_requests and /abort_requests: end running requests by their ids.
#include <algorithm>
#include <boost/json/serialize.hpp>

#include "openai/request_fields.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

Result<> abort_named(const ServicePtr& service, const ExchangePtr& exchange, bool all_without_ids) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  std::vector<std::string> ids;
  TRY_VOID(fields.texts("request_ids", ids));
  if (ids.empty() && !all_without_ids)
    return invalid("request_ids", "must be a list of at least one request id");
  int aborted = 0;
  for (const auto& generation : service->generations.all()) {
    if (!ids.empty() && std::ranges::find(ids, generation->request_id()) == ids.end()) continue;
    generation->cancel();
    ++aborted;
  }
  exchange->respond({.body = json::serialize(json::object{{"status", "aborted"}, {"aborted", aborted}})});
  return {};
}

}  // namespace

Result<> abort_requests(const ServicePtr& service, const ExchangePtr& exchange) {
  return abort_named(service, exchange, false);
}

Result<> abort_all_requests(const ServicePtr& service, const ExchangePtr& exchange) {
  return abort_named(service, exchange, true);
}

}  // namespace octavo::routes
