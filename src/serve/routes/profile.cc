// /start_profile and /stop_profile trace the engine's steps, as in vLLM.
#include "openai/request_fields.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

Result<> start_profile(const ServicePtr& service, const ExchangePtr& exchange) {
  boost::json::object session;
  if (const std::string body = exchange->take_body(); !body.empty()) {
    TRY(session, openai::parse_body(body));
  }
  TRY_VOID(service->views.steps.start(session));
  exchange->respond({.content_type = "", .body = ""});
  return {};
}

Result<> stop_profile(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY_VOID(service->views.steps.stop());
  exchange->respond({.content_type = "", .body = ""});
  return {};
}

}  // namespace octavo::routes
