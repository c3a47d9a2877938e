#include "batches/content.h"

#include <fstream>
#include <utility>

namespace octavo::batches {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;

class FileStream : public std::enable_shared_from_this<FileStream> {
 public:
  FileStream(HostPtr host, std::shared_ptr<http::Exchange> exchange, std::ifstream file)
      : host_(std::move(host)), exchange_(std::move(exchange)), file_(std::move(file)) {}

  // Sends pieces until the connection's send buffer is full. Runs on one of the host's threads, never on two
  // at once.
  void send() {
    std::string piece(kPieceBytes, '\0');
    while (!exchange_->wait_writable(
        [self = shared_from_this()] { self->host_->post([self] { self->send(); }); })) {
      file_.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      const auto count = static_cast<std::size_t>(file_.gcount());
      if (count > 0 && !exchange_->write(std::string_view(piece).substr(0, count))) return;
      if (file_.eof()) return exchange_->finish();
      if (!file_) return exchange_->cut();
    }
  }

 private:
  const HostPtr host_;
  const std::shared_ptr<http::Exchange> exchange_;
  std::ifstream file_;
};

}  // namespace

Result<> send_file(const HostPtr& host, const std::shared_ptr<http::Exchange>& exchange,
                   const std::string& path, std::string content_type) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return failure(ErrorCode::io, "cannot read the content of the file");
  exchange->start_stream({.content_type = std::move(content_type)});
  std::make_shared<FileStream>(host, exchange, std::move(file))->send();
  return {};
}

}  // namespace octavo::batches
