#include "serve/submission.h"

#include <utility>

namespace octavo {
namespace {

class ReceiverSink final : public OutputSink {
 public:
  ReceiverSink(std::shared_ptr<OutputReceiver> receiver, std::size_t index)
      : receiver_(std::move(receiver)), index_(index) {}
  void deliver(Output&& output) noexcept override { receiver_->deliver(index_, std::move(output)); }

 private:
  std::shared_ptr<OutputReceiver> receiver_;
  std::size_t index_;
};

}  // namespace

std::shared_ptr<OutputSink> sink_of(std::shared_ptr<OutputReceiver> receiver, std::size_t index) {
  return std::make_shared<ReceiverSink>(std::move(receiver), index);
}

Result<Admission::Ticket> admit(Admission& admission, Metrics& metrics, const std::string& client,
                                Price price) {
  auto ticket = admission.admit(client, price);
  if (!ticket) metrics.admission_rejected();
  return ticket;
}

Result<> Submission::submit(Request request, std::shared_ptr<OutputSink> sink) {
  TRY(const RequestId id, engine_.submit(std::move(request), std::move(sink)));
  add([&engine = engine_, id] { engine.abort(id); });
  return {};
}

void Submission::add(std::function<void()> cancel) {
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    cancels_.push_back(cancel);
    late = cancelled_;
  }
  if (late) cancel();
}

bool Submission::cancel() noexcept {
  std::vector<std::function<void()>> cancels;
  bool before = false;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(cancelled_, true);
    cancels = cancels_;
  }
  for (const auto& cancel : cancels) cancel();
  return !before;
}

bool Submission::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void Submission::cancel(std::size_t index) {
  std::function<void()> cancel;
  {
    const std::lock_guard lock(mutex_);
    cancel = cancels_[index];
  }
  cancel();
}

}  // namespace octavo
