// /inference/v1/abort_requests and /abort_requests abort running requests of the tenant by request id.
#include "serve/routes/abort.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "openai/request_fields.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

// Returns whether the reply belongs to one of these request ids. The id of a reply is a prefix and the
// client's request id.
bool has_id(std::string_view reply_id, const std::vector<std::string>& ids) {
  constexpr std::string_view kPrefixes[] = {"", "chatcmpl-", "cmpl-", "msg_", "resp_", "ollama-"};
  for (const std::string_view prefix : kPrefixes)
    if (reply_id.starts_with(prefix) && std::ranges::find(ids, reply_id.substr(prefix.size())) != ids.end())
      return true;
  return false;
}

int abort_in(const Service& service, const ExchangePtr& exchange, const std::vector<std::string>& ids) {
  // If tenants are identified only by addresses, any client may abort all requests, because a training
  // program aborts requests of workers on other hosts.
  const AccessOptions& access = service.options.access;
  const bool tenants = !access.api_keys.empty() || !access.client_header.empty();
  const std::string client = client_of(service, exchange->request());
  int aborted = 0;
  for (const auto& generation : service.generations.all()) {
    if (tenants && generation->client() != client) continue;
    if (!ids.empty() && !has_id(generation->request_id(), ids)) continue;
    if (generation->cancel()) ++aborted;
  }
  return aborted;
}

}  // namespace

Result<> abort_named(std::span<const ServicePtr> services, const ExchangePtr& exchange,
                     bool all_without_ids) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  std::vector<std::string> ids;
  TRY_VOID(fields.texts("request_ids", ids));
  if (ids.empty() && !all_without_ids)
    return invalid("request_ids", "must be a list of at least one request id");
  int aborted = 0;
  for (const ServicePtr& service : services) aborted += abort_in(*service, exchange, ids);
  exchange->respond({.body = json::serialize(json::object{{"status", "aborted"}, {"aborted", aborted}})});
  return {};
}

Result<> abort_requests(const ServicePtr& service, const ExchangePtr& exchange) {
  return abort_named({&service, 1}, exchange, false);
}

Result<> abort_all_requests(const ServicePtr& service, const ExchangePtr& exchange) {
  return abort_named({&service, 1}, exchange, true);
}

}  // namespace octavo::routes
