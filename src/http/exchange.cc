#include "http/exchange.h"

#include <utility>

#include "http/connection.h"

namespace octavo::http {

Exchange::Exchange(Request request, BodyShare body_share, std::shared_ptr<Connection> connection,
                   std::uint64_t serial)
    : request_(std::move(request)),
      body_share_(std::move(body_share)),
      connection_(std::move(connection)),
      serial_(serial) {}
Exchange::~Exchange() { connection_->abandon(serial_); }

void Exchange::respond(Response response) {
  for (const auto& [name, value] : extra_) response.headers.add(name, value);
  connection_->respond(serial_, std::move(response));
}
void Exchange::start_stream(Response response) {
  for (const auto& [name, value] : extra_) response.headers.add(name, value);
  connection_->start_stream(serial_, std::move(response));
}
bool Exchange::write(std::string_view piece) { return connection_->write(serial_, piece); }
std::size_t Exchange::unsent_bytes() const { return connection_->unsent_bytes(); }
bool Exchange::wait_writable(std::function<void()> resume) {
  return connection_->wait_writable(serial_, std::move(resume));
}
void Exchange::cut() { connection_->cut(serial_); }
void Exchange::finish() { connection_->finish(serial_); }
void Exchange::on_close(std::function<void(CloseReason)> callback) {
  connection_->on_close(serial_, std::move(callback));
}

}  // namespace octavo::http
