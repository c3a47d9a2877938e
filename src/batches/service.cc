#include "batches/service.h"

#include <utility>

#include "batches/calls.h"
#include "batches/worker.h"

namespace octavo::batches {
namespace {

class Batches final : public BatchApi {
 public:
  Batches(std::shared_ptr<Store> store, HostPtr host)
      : store_(std::move(store)), host_(std::move(host)), worker_(store_, host_) {}

  void handle(const std::shared_ptr<http::Exchange>& exchange) override {
    batches::handle(*store_, worker_, host_, exchange);
  }
  void stop() override { worker_.stop(); }

 private:
  const std::shared_ptr<Store> store_;
  const HostPtr host_;
  Worker worker_;
};

}  // namespace

std::unique_ptr<BatchApi> start(std::unique_ptr<Store> store, HostPtr host) {
  return std::make_unique<Batches>(std::move(store), std::move(host));
}

}  // namespace octavo::batches
