#include "batches/service.h"

#include <utility>

#include "batches/calls.h"
#include "batches/worker.h"

namespace octavo::batches {
namespace {

class Batches final : public BatchApi {
 public:
  Batches(std::shared_ptr<Store> store, const std::shared_ptr<Service>& service)
      : store_(std::move(store)),
        service_(service),
        worker_(store_, service_, service->options.admission.max_num_seqs) {}

  void handle(const std::shared_ptr<http::Exchange>& exchange) override {
    // A weak pointer, because the service owns this object.
    if (const auto service = service_.lock()) batches::handle(*store_, worker_, service, exchange);
  }
  void stop() override { worker_.stop(); }

 private:
  const std::shared_ptr<Store> store_;
  const std::weak_ptr<Service> service_;
  Worker worker_;
};

}  // namespace

void start(std::unique_ptr<Store> store, const std::shared_ptr<Service>& service) {
  service->batches = std::make_unique<Batches>(std::move(store), service);
}

}  // namespace octavo::batches
