// /scale_elastic_ep and /is_scaling_elastic_ep change the number of engines of this server, as in vLLM.
#include "openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

Result<> scale_engines(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const boost::json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  std::optional<int> engines;
  int drain_s = 120;
  TRY_VOID(fields.integer("new_data_parallel_size", engines));
  TRY_VOID(fields.integer("drain_timeout", drain_s));
  for (const std::string& name : fields.unread()) return invalid(name, "is not a field of this request");
  if (!engines) return invalid("new_data_parallel_size", "must be given");
  service->engine.scale(*engines, drain_s, [exchange, count = *engines](const Result<>& scaled) {
    if (!scaled) return exchange->respond(openai::error_response(scaled.error()));
    exchange->respond({.body = fmt::format(R"({{"message":"Scaled to {} data parallel engines"}})", count)});
  });
  return {};
}

http::Response is_scaling(Service& service, std::string_view) {
  return {.body = service.engine.scaling() ? R"({"is_scaling_elastic_ep":true})"
                                           : R"({"is_scaling_elastic_ep":false})"};
}

Result<> is_scaling_too(const ServicePtr& service, const ExchangePtr& exchange) {
  exchange->respond(is_scaling(*service, ""));
  return {};
}

}  // namespace octavo::routes
