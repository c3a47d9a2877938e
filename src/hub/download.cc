#include "hub/download.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

#include "base/sha256.h"
#include "hub/file.h"
#include "hub/files.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

// number of new bytes after which the count of failures starts again
constexpr std::uint64_t kProgress = 1 << 20;

// An incomplete download, in the file blobs/ETAG.incomplete.
class Partial {
 public:
  // Continues an earlier download if the file exists.
  static Result<Partial> open(const fs::path& path, const BlobInfo& blob, const Transfer& transfer) {
    TRY(File file, File::open(path));
    Partial partial(std::move(file), blob, transfer);
    TRY_VOID(partial.take_existing());
    return partial;
  }

  std::uint64_t size() const { return size_; }

  Result<> append(std::span<const std::byte> bytes) {
    if (bytes.size() > blob_.size - size_)
      return failure(ErrorCode::unavailable, "{}: the server sent more than {} bytes, the size of the file",
                     blob_.file, blob_.size);
    for (std::span<const std::byte> rest = bytes; !rest.empty();) {
      const ssize_t count = ::pwrite(file_.descriptor(), rest.data(), rest.size(),
                                     static_cast<off_t>(size_ + (bytes.size() - rest.size())));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return file_failure("cannot write", file_.path());
      rest = rest.subspan(static_cast<std::size_t>(count));
    }
    count_in(bytes);
    return {};
  }

  Result<> clear() {
    if (::ftruncate(file_.descriptor(), 0) != 0) return file_failure("cannot shorten", file_.path());
    transfer_.count(-static_cast<std::int64_t>(size_));
    size_ = 0;
    sha256_ = Sha256();
    return {};
  }

  // Compares the SHA-256 of a complete file. Small files are not checked, because their etags are not
  // SHA-256. After this call, bytes may be added only after clear().
  bool is_right() { return blob_.etag.size() != 64 || sha256_.hex() == blob_.etag; }

  // The rename is atomic.
  Result<> finish(const fs::path& name) {
    if (::fsync(file_.descriptor()) != 0) return file_failure("cannot write", file_.path());
    if (::rename(file_.path().c_str(), name.c_str()) != 0) return file_failure("cannot rename", name);
    return {};
  }

 private:
  Partial(File file, const BlobInfo& blob, const Transfer& transfer)
      : file_(std::move(file)), blob_(blob), transfer_(transfer) {}

  Result<> take_existing() {
    struct stat info{};
    if (::fstat(file_.descriptor(), &info) != 0) return file_failure("cannot read", file_.path());
    if (static_cast<std::uint64_t>(info.st_size) > blob_.size) return clear();
    std::vector<std::byte> buffer(1 << 20);
    while (size_ < static_cast<std::uint64_t>(info.st_size)) {
      const ssize_t count =
          ::pread(file_.descriptor(), buffer.data(), buffer.size(), static_cast<off_t>(size_));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return file_failure("cannot read", file_.path());
      count_in({buffer.data(), static_cast<std::size_t>(count)});
    }
    return {};
  }

  void count_in(std::span<const std::byte> bytes) {
    sha256_.add(bytes);
    size_ += bytes.size();
    transfer_.count(static_cast<std::int64_t>(bytes.size()));
  }

  File file_;
  const BlobInfo& blob_;
  const Transfer& transfer_;
  Sha256 sha256_;
  std::uint64_t size_ = 0;
};

std::uint64_t size_or_zero(const fs::path& file) {
  std::error_code absent;
  const std::uint64_t size = fs::file_size(file, absent);
  return absent ? 0 : size;
}

// Returns `unavailable` if the connection ends before the last byte.
Result<> receive(const Open& open, const BlobInfo& blob, const Transfer& transfer, Partial& partial,
                 Backoff& backoff) {
  TRY(Opened answer, open(partial.size(), backoff));
  const std::string range(answer.head.headers.find("Content-Range").value_or(""));
  if (answer.head.status == 206 && !range.starts_with(fmt::format("bytes {}-", partial.size())))
    return failure(ErrorCode::unavailable,
                   "{}: the server sent a different range of bytes than requested: {}", blob.file,
                   printable(range));
  if (answer.head.status == 200 && partial.size() > 0) TRY_VOID(partial.clear());
  while (!transfer.given_up) {
    const auto piece = answer.client.read();
    if (!piece) return failure(ErrorCode::unavailable, "{}: {}", blob.file, piece.error().message);
    if (!*piece) break;
    TRY_VOID(partial.append(std::as_bytes(std::span(**piece))));
  }
  if (partial.size() == blob.size) return {};
  return failure(ErrorCode::unavailable, "{}: the connection ended after {} of {} bytes", blob.file,
                 partial.size(), blob.size);
}

}  // namespace

Result<> check_space(const RepoCache& cache, const std::vector<BlobInfo>& blobs) {
  std::uint64_t needed = 0;
  for (const BlobInfo& blob : blobs) {
    const fs::path name = cache.blob(blob.etag);
    const std::uint64_t existing = std::max(size_or_zero(name), size_or_zero(name.string() + ".incomplete"));
    needed += blob.size - std::min(existing, blob.size);
  }
  std::error_code error;
  fs::create_directories(cache.blobs(), error);
  if (error) return failure(ErrorCode::io, "cannot create {}: {}", cache.blobs().string(), error.message());
  const fs::space_info space = fs::space(cache.blobs(), error);
  if (error || space.available >= needed) return {};
  return failure(ErrorCode::resource_exhausted,
                 "the download needs {:.2f} GB, but {} has only {:.2f} GB free",
                 static_cast<double>(needed) * 1e-9, cache.folder().string(),
                 static_cast<double>(space.available) * 1e-9);
}

Result<bool> download(const RepoCache& cache, const BlobInfo& blob, const Open& open,
                      const Transfer& transfer) {
  TRY(const File lock, locked(cache.lock(blob.etag)));
  const fs::path name = cache.blob(blob.etag);
  std::error_code absent;
  if (fs::file_size(name, absent) == blob.size) {
    transfer.count(static_cast<std::int64_t>(blob.size));
    return false;
  }
  TRY(Partial partial, Partial::open(name.string() + ".incomplete", blob, transfer));
  std::uint64_t furthest = partial.size();
  for (Backoff backoff; !transfer.given_up;) {
    Result<> received;
    if (partial.size() < blob.size) received = receive(open, blob, transfer, partial, backoff);
    if (received && partial.is_right()) {
      TRY_VOID(partial.finish(name));
      return true;
    }
    if (received) {
      TRY_VOID(partial.clear());
      received = failure(ErrorCode::unavailable, "{}: the received bytes have a wrong SHA-256", blob.file);
    } else if (partial.size() >= furthest + kProgress) {
      furthest = partial.size();
      backoff.reset();
    }
    TRY_VOID(backoff.wait(received.error()));
  }
  return failure(ErrorCode::unavailable, "{}: the download was cancelled", blob.file);
}

}  // namespace octavo::hub
