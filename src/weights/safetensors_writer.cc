#include "weights/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace octavo {
namespace {

std::size_t element_bytes(const TensorEntry& entry) {
  const std::int64_t count =
      std::accumulate(entry.shape.begin(), entry.shape.end(), std::int64_t{1}, std::multiplies());
  return count == 0 ? 0 : entry.bytes / static_cast<std::size_t>(count);
}

std::unexpected<Error> io_failure(const std::string& path) {
  return failure(ErrorCode::io, "{}: {}", path, std::strerror(errno));
}

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    std::vector<TensorEntry> entries) {
  std::ranges::stable_sort(entries, std::ranges::greater(), element_bytes);
  boost::json::object header;
  header["__metadata__"] = {{"format", "pt"}};
  std::vector<std::size_t> offsets{0};
  for (const TensorEntry& entry : entries) {
    offsets.push_back(offsets.back() + entry.bytes);
    header[entry.name] = {{"dtype", boost::json::string_view(entry.format.data(), entry.format.size())},
                          {"shape", boost::json::array(entry.shape.begin(), entry.shape.end())},
                          {"data_offsets", boost::json::array{offsets[offsets.size() - 2], offsets.back()}}};
  }
  std::string text = boost::json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();

  const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return io_failure(path);
  SafetensorsWriter writer(path, file);
  for (std::size_t i = 0; i < entries.size(); ++i)
    writer.unwritten_[entries[i].name] = {sizeof length + text.size() + offsets[i], entries[i].bytes};
  TRY_VOID(writer.write_at(0, std::as_bytes(std::span(&length, 1))));
  TRY_VOID(writer.write_at(sizeof length, std::as_bytes(std::span(text))));
  return writer;
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      unwritten_(std::move(other.unwritten_)) {}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_ >= 0) ::close(file_);
}

Result<> SafetensorsWriter::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<::off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_failure(path_);
    offset += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<> SafetensorsWriter::write(const std::string& name, std::span<const std::byte> bytes) {
  const auto found = unwritten_.find(name);
  CHECK(found != unwritten_.end() && found->second.bytes == bytes.size(), "tensor {} of {} bytes", name,
        bytes.size());
  TRY_VOID(write_at(found->second.offset, bytes));
  unwritten_.erase(found);
  return {};
}

Result<> SafetensorsWriter::finish() {
  CHECK(unwritten_.empty(), "{} tensors were not written", unwritten_.size());
  if (::fsync(file_) != 0) return io_failure(path_);
  return {};
}

}  // namespace octavo
