// /v1/files, /v1/batches and /v1/messages/batches
#include "openai/anthropic_errors.h"
#include "openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

Result<> batches(const ServicePtr& service, const ExchangePtr& exchange) {
  if (service->batches) {
    service->batches->handle(exchange);
    return {};
  }
  const Error none{ErrorCode::not_found, "files and batches need a server with --batch-dir FOLDER", {}};
  const bool anthropic = exchange->request().path.find("/v1/messages/") != std::string::npos;
  exchange->respond(anthropic ? anthropic::error_response(none) : openai::error_response(none));
  return {};
}

}  // namespace octavo::routes
