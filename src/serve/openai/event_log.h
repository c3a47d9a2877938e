// Keeps the events of a background response, so that clients can read them again and continue a broken
// stream.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/exchange.h"

namespace octavo::openai {

// The exchange of a generation that writes into memory. Readers get the events at their own pace, and the
// generation does not wait for them. Any thread may call the functions.
class EventLog final : public http::Exchange, public std::enable_shared_from_this<EventLog> {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{16} << 20;
  static constexpr std::size_t kWrittenBytesMax = std::size_t{256} << 20;
  using Counter = std::shared_ptr<std::atomic<std::size_t>>;

  // creator: the client that has created the response. It is the first reader, and gets an error that occurs
  // before the first event. written: bytes of all logs that are not finished.
  EventLog(std::shared_ptr<http::Exchange> creator, Counter written)
      : Exchange(http::Request(creator->request())),
        creator_(std::move(creator)),
        written_(std::move(written)) {}
  ~EventLog() override { *written_ -= counted_; }

  // Sends the events after the event with the number `after` (-1: all events), and later events when they are
  // written.
  void send_to(std::shared_ptr<http::Exchange> exchange, std::int64_t after);
  std::size_t bytes() const;

  std::size_t loop_number() const override { return 0; }
  void respond(http::Response response) override {
    if (const auto creator = take_creator()) creator->respond(std::move(response));
  }
  void start_stream(http::Response response) override;
  // Returns false above kBytesMax, and if all logs that are not finished have more than kWrittenBytesMax.
  bool write(std::string_view piece) override;
  bool wait_writable(std::function<void()>) override { return false; }
  void finish() override;
  std::size_t unsent_bytes() const override { return 0; }
  void cut() override;
  void on_close(std::function<void(http::CloseReason)>) override {}

 private:
  struct Reader {
    std::shared_ptr<http::Exchange> exchange;
    std::size_t sent = 0;  // bytes of text_
    bool busy = false;     // whether a thread sends to the reader, or the reader's buffer is full
  };
  using ReaderPtr = std::shared_ptr<Reader>;

  // Returns null after the first call, because the log must not keep the creator's connection.
  std::shared_ptr<http::Exchange> take_creator();
  void add(ReaderPtr reader);
  void send(const ReaderPtr& reader);
  void send_to_all();
  // The store counts the bytes of finished logs. Needs the lock.
  void end();
  // Returns the next bytes for the reader; "" if there are none. last: whether they are the last ones.
  std::string take(Reader& reader, bool& last);

  mutable std::mutex mutex_;  // guards all members below
  std::shared_ptr<http::Exchange> creator_;
  std::string text_;
  std::vector<std::size_t> starts_;  // index: number of an event; value: its first byte in text_
  std::vector<ReaderPtr> readers_;
  bool over_ = false;
  const Counter written_;
  std::size_t counted_ = 0;  // bytes of text_ that written_ counts
};

}  // namespace octavo::openai
