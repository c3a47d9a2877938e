// Handles the HTTP requests of a server with many models: finds the model of a request, and passes the
// request to the model's Service after the model's first load.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "many/model_table.h"
#include "serve/api_handler.h"
#include "serve/worker_pool.h"

namespace octavo::many {

// Returns the model that a request names in its query or its body; "": none.
std::string model_name(const http::Request& request, const std::string& in_body, std::string_view root_path);

class ModelHandler final : public ApiHandler, public std::enable_shared_from_this<ModelHandler> {
 public:
  // options: those that do not depend on a model
  ModelHandler(std::shared_ptr<ModelTable> table, ServeOptions options);

  void handle(const ApiKeys& keys, std::shared_ptr<http::Exchange> exchange) override;
  void count(const http::Answered& answered) override;
  std::vector<std::shared_ptr<Service>> services() const override;
  void stopping() override { table_->end_first_loads(); }
  void stop() override;

 private:
  using ExchangePtr = std::shared_ptr<http::Exchange>;

  std::optional<http::Response> own_page(std::string_view path) const;
  bool change_model(std::string_view path, const ExchangePtr& exchange);
  void read_body(const ApiKeys& keys, const ExchangePtr& exchange);
  // stored_id: id of the response that the request continues; "": none
  void pass_on(const ApiKeys& keys, const ExchangePtr& exchange, const std::string& model, double timeout_s,
               const std::string& stored_id = "");
  bool pass_on_to_owner(const ApiKeys& keys, const ExchangePtr& exchange, const std::string& stored_id) const;
  void pass_on_without_body(const ApiKeys& keys, const ExchangePtr& exchange, std::string_view path);
  void obey_keep_alive(const ApiKeys& keys, const ExchangePtr& exchange, const std::string& model,
                       double timeout_s);
  // timeout_s: 0: no deadline
  Call call_of(const ExchangePtr& exchange, std::size_t model, double timeout_s) const;
  http::Response unread_cost(std::string_view id) const;
  std::shared_ptr<Service> loaded_service() const;
  std::shared_ptr<Service> owner_of(const std::string& stored_id) const;
  void lend(const std::string& stored_id, Service& to) const;
  bool abort(std::string_view path, const ExchangePtr& exchange) const;
  std::optional<std::size_t> find(std::string_view name) const;
  http::Response no_model(std::string_view path, std::string_view name) const;
  std::string metrics() const;

  const std::shared_ptr<ModelTable> table_;
  const ServeOptions options_;
  const std::int64_t started_at_ =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  HttpMetrics http_;
  WorkerPool intake_;
};

}  // namespace octavo::many
