#include "serve/api_server.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "openai/api_key.h"
#include "openai/errors.h"
#include "serve/generation.h"
#include "serve/routes/routes.h"

namespace octavo {
namespace {

constexpr int kConfirmMsMax = 10'000;
constexpr int kLastWordsMs = 2000;

}  // namespace

// The state that the HTTP server's callbacks share. `service` is null until the model is loaded.
struct ApiServer::Door {
  explicit Door(const std::vector<std::string>& api_keys) : keys(api_keys) {}

  const ApiKeys keys;
  std::atomic<std::shared_ptr<Service>> service;
};

ApiServer::ApiServer(std::shared_ptr<Door> door, std::unique_ptr<http::Server> server)
    : door_(std::move(door)), server_(std::move(server)) {}

ApiServer::~ApiServer() { stop(0); }

Result<std::unique_ptr<ApiServer>> ApiServer::start(const std::vector<std::string>& api_keys,
                                                    http::ServerOptions http) {
  http.refusal = [](int status, const std::string& message) {
    return openai::error_response(status, message);
  };
  const auto door = std::make_shared<Door>(api_keys);
  // A client without a valid key cannot send a body to any path.
  http.admit = [door](const http::Request& request) { return unauthorized(door->keys, request); };
  http.answered = [door](const http::Answered& answered) {
    if (const auto service = door->service.load()) count_answer(*service, answered);
  };
  auto handler = [door](std::shared_ptr<http::Exchange> exchange) {
    if (const auto service = door->service.load()) return route(service, door->keys, std::move(exchange));
    exchange->respond(openai::error_response(503, "the model is loading"));
  };
  TRY(auto server, http::Server::start(std::move(http), std::move(handler)));
  return std::unique_ptr<ApiServer>(new ApiServer(door, std::move(server)));
}

void ApiServer::open(std::shared_ptr<Service> service) { door_->service = std::move(service); }

void ApiServer::stop(int grace_ms) {
  const auto service = door_->service.load();
  if (service)
    service->views.live.stop();  // otherwise the server would wait for the streams of the live page
  if (service && service->batches) service->batches->stop();
  if (!server_->drain(grace_ms) && service) {
    for (const auto& generation : service->generations.all()) generation->shut_down();
    server_->drain(kLastWordsMs);
  }
  server_->stop(0);
  if (!service) return;
  service->fetchers.stop();
  service->intake.stop();
  for (int waited = 0; service->generations.count() > 0 && waited < kConfirmMsMax; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (service->generations.count() > 0)
    log_error("the engine has not confirmed the end of {} generations", service->generations.count());
  service->deadlines.stop();
  service->delivery.stop();
}

}  // namespace octavo
