#include "serve/api_server.h"

#include <chrono>
#include <thread>

#include "base/log.h"
#include "serve/api_key.h"
#include "serve/openai/errors.h"
#include "serve/routes.h"

namespace octavo {
namespace {

constexpr int kConfirmMsMax = 10'000;

}  // namespace

ApiServer::ApiServer(std::shared_ptr<Service> service, std::unique_ptr<http::Server> server)
    : service_(std::move(service)), server_(std::move(server)) {}

ApiServer::~ApiServer() { stop(0); }

Result<std::unique_ptr<ApiServer>> ApiServer::start(std::shared_ptr<Service> service,
                                                    http::ServerOptions http) {
  http.refusal = [](int status, const std::string& message) {
    return openai::error_response(status, message);
  };
  const auto keys = std::make_shared<const ApiKeys>(service->options.api_keys);
  // Nobody without a key gets to send a body.
  http.admit = [keys](const http::Request& request) { return unauthorized(*keys, request); };
  auto handler = [service, keys](std::shared_ptr<http::Exchange> exchange) {
    route(service, *keys, std::move(exchange));
  };
  TRY(auto server, http::Server::start(std::move(http), std::move(handler)));
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(service), std::move(server)));
}

void ApiServer::stop(int grace_ms) {
  server_->stop(grace_ms);
  service_->intake.stop();
  service_->compilers.stop();
  for (int waited = 0; service_->generations > 0 && waited < kConfirmMsMax; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (service_->generations > 0)
    log_error("the engine has not confirmed the end of {} generations", service_->generations.load());
  service_->delivery.stop();
}

}  // namespace octavo
