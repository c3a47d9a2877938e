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

class OneService final : public ApiHandler {
 public:
  explicit OneService(std::shared_ptr<Service> service) : service_(std::move(service)) {}

  void handle(const ApiKeys& keys, std::shared_ptr<http::Exchange> exchange) override {
    route(service_, keys, std::move(exchange));
  }
  void count(const http::Answered& answered) override {
    count_answer(service_->metrics.http, service_->options, answered);
  }
  std::vector<std::shared_ptr<Service>> services() const override { return {service_}; }

 private:
  const std::shared_ptr<Service> service_;
};

void stop_generations(const Service& service) {
  for (const auto& generation : service.generations.all()) generation->shut_down();
}

// Ends the service's threads, after its engine has confirmed the end of all generations.
void stop_service(Service& service) {
  service.fetchers.stop();
  service.intake.stop();
  for (int waited = 0; service.generations.count() > 0 && waited < kConfirmMsMax; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (service.generations.count() > 0)
    log_error("the engine has not confirmed the end of {} generations", service.generations.count());
  service.deadlines.stop();
  service.delivery.stop();
}

}  // namespace

// The state that the HTTP server's callbacks share. `handler` is null until open().
struct ApiServer::Door {
  explicit Door(const std::vector<std::string>& api_keys) : keys(api_keys) {}

  const ApiKeys keys;
  std::atomic<std::shared_ptr<ApiHandler>> handler;
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
  // Checks the key before the body is read. So a client without a valid key cannot send large bodies.
  http.admit = [door](const http::Request& request) { return unauthorized(door->keys, request); };
  http.answered = [door](const http::Answered& answered) {
    if (const auto handler = door->handler.load()) handler->count(answered);
  };
  auto handle = [door](std::shared_ptr<http::Exchange> exchange) {
    if (const auto handler = door->handler.load()) return handler->handle(door->keys, std::move(exchange));
    exchange->respond(openai::error_response(503, "the model is loading"));
  };
  TRY(auto server, http::Server::start(std::move(http), std::move(handle)));
  return std::unique_ptr<ApiServer>(new ApiServer(door, std::move(server)));
}

void ApiServer::open(std::shared_ptr<Service> service) {
  open(std::make_shared<OneService>(std::move(service)));
}

void ApiServer::open(std::shared_ptr<ApiHandler> handler) { door_->handler = std::move(handler); }

void ApiServer::stop(int grace_ms) {
  const auto handler = door_->handler.load();
  const auto services = [&] {
    return handler ? handler->services() : std::vector<std::shared_ptr<Service>>();
  };
  if (handler) handler->stopping();
  for (const auto& service : services()) {
    // Stops the streams of the live page, for whose end the server would otherwise wait.
    service->views.live.stop();
    if (service->batches) service->batches->stop();
  }
  if (!server_->drain(grace_ms)) {
    // Reads the list again, because another model may have been loaded in the meantime.
    const auto ending = services();
    for (const auto& service : ending) stop_generations(*service);
    if (!ending.empty()) server_->drain(kLastWordsMs);
  }
  server_->stop(0);
  if (!handler) return;
  handler->stop();
  for (const auto& service : services()) stop_service(*service);
}

}  // namespace octavo
