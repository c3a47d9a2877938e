#include "batches/batch_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace octavo::batches {

namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

}  // namespace

DurableFile::DurableFile(std::string path)
    : path_(std::move(path)),
      partial_(path_ + ".partial"),
      file_(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR)) {
  if (file_ < 0) error_ = errno;
}

DurableFile::~DurableFile() {
  if (file_ >= 0) {
    ::close(file_);
    ::unlink(partial_.c_str());
  }
}

void DurableFile::write(std::string_view bytes) {
  bytes_ += std::ssize(bytes);
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) return write_out(bytes);
  buffer_ += bytes;
}

void DurableFile::flush() {
  write_out(buffer_);
  buffer_.clear();
}

void DurableFile::write_out(std::string_view bytes) {
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      error_ = errno;
  }
}

Result<> DurableFile::commit() {
  flush();
  if (error_ == 0 && ::fsync(file_) != 0) error_ = errno;
  if (error_ == 0 && std::rename(partial_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ != 0)
    return failure(ErrorCode::io, "cannot write {}: {}", path_, std::generic_category().message(error_));
  ::close(std::exchange(file_, -1));
  return {};
}

}  // namespace octavo::batches
