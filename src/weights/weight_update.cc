#include "weights/weight_update.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "tensor/mapped_file.h"
#include "weights/safetensors.h"
#include "weights/weight_files.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

// Limit for an update, as a multiple of the model's bytes. A trainer may send a larger format than the
// model's files have, such as f32 for fp8.
constexpr std::uint64_t kBytesOfModelMost = 4;
constexpr std::uint64_t kHeaderBytesMost = 1 << 20;  // bytes that the limit adds for file headers
constexpr std::string_view kPrefix = "octavo-weights-";

Result<> io_failure(const fs::path& path, std::string_view what) {
  return failure(ErrorCode::io, "{}: cannot {}: {}", path.string(), what,
                 std::generic_category().message(errno));
}

fs::path memory_folder() {
  std::error_code ignored;
  const fs::path shared = "/dev/shm";
  return fs::is_directory(shared, ignored) && ::access(shared.c_str(), W_OK) == 0
             ? shared
             : fs::temp_directory_path(ignored);
}

// Deletes the folders that killed servers left: no process holds the lock on their file `lock`.
void remove_abandoned(const fs::path& parent) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    const int file = ::open((entry.path() / "lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), ignored);
    ::close(file);
  }
}

// Makes a folder that only this user can read.
Result<fs::path> make_root() {
  const fs::path parent = memory_folder();
  remove_abandoned(parent);
  std::string name = (parent / fmt::format("{}XXXXXX", kPrefix)).string();
  if (::mkdtemp(name.data()) == nullptr) return std::unexpected(io_failure(name, "make the folder").error());
  return name;
}

Result<> append(const fs::path& path, std::span<const std::byte> bytes, std::uint64_t at) {
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | (at == 0 ? O_TRUNC : 0), 0600);
  if (file < 0) return io_failure(path, "open the file");
  Result<> result{};
  while (!bytes.empty() && result) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      result = io_failure(path, "write");
      break;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
  ::close(file);
  return result;
}

std::set<std::string, std::less<>> files_of(const std::map<std::string, std::string, std::less<>>& file_of) {
  std::set<std::string, std::less<>> files;
  for (const auto& [tensor, file] : file_of) files.insert(file);
  return files;
}

}  // namespace

Result<std::unique_ptr<WeightUpdate>> WeightUpdate::create(const std::string& model) {
  std::error_code ignored;
  if (!fs::is_directory(model, ignored))
    return failure(ErrorCode::unsupported,
                   "{}: weights can only be sent to a model in a folder of safetensors", model);
  TRY(const WeightFiles files, find_weight_files(model));
  if (files.torch)
    return failure(ErrorCode::unsupported,
                   "{}: weights can only be sent to a model of safetensors, not of {}", model,
                   files.names.front());
  TRY(fs::path root, make_root());
  std::unique_ptr<WeightUpdate> update(new WeightUpdate(fs::absolute(model), std::move(root)));
  TRY_VOID(update->prepare_root());
  TRY_VOID(update->read_model());
  return update;
}

WeightUpdate::~WeightUpdate() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

Result<> WeightUpdate::prepare_root() {
  lock_ = ::open((root_ / "lock").c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0) return io_failure(root_ / "lock", "lock the file");
  std::error_code error;
  fs::create_directory(root_ / "files", error);
  if (error) return failure(ErrorCode::io, "{}: {}", (root_ / "files").string(), error.message());
  return {};
}

Result<> WeightUpdate::read_model() {
  TRY(const WeightFiles files, find_weight_files(model_));
  bytes_most_ = kHeaderBytesMost;
  index_ = is_consolidated(model_.string()) ? "consolidated.safetensors.index.json"
                                            : "model.safetensors.index.json";
  for (const std::string& name : files.names) {
    TRY(const MappedFile file, MappedFile::open(model_ / name));
    TRY(const std::vector<StoredTensor> tensors, parse_safetensors(file.bytes(), file.path()));
    for (const StoredTensor& tensor : tensors) {
      const auto listed = files.file_of.find(tensor.name);
      if (!files.file_of.empty() && (listed == files.file_of.end() || listed->second != name)) continue;
      current_.emplace(tensor.name, name);
      bytes_most_ += kBytesOfModelMost * tensor.bytes.size();
    }
  }
  return {};
}

Result<> WeightUpdate::start() {
  if (state_ != State::idle)
    return failure(ErrorCode::unavailable, "an update of the weights is already running: finish it first");
  state_ = State::receiving;
  return {};
}

Result<> WeightUpdate::check_room(std::uint64_t more) const {
  if (state_ != State::receiving)
    return failure(ErrorCode::unavailable,
                   "no update of the weights is running: send /start_weight_update first");
  const std::uint64_t used = received_bytes_ + incomplete_all_;
  if (more > bytes_most_ || used > bytes_most_ - more)
    return invalid("update_info",
                   "one update can have at most {} bytes ({} times the model, and headers), got {}",
                   bytes_most_, kBytesOfModelMost, used + more);
  return {};
}

fs::path WeightUpdate::next_file() const {
  return root_ / "files" / fmt::format("octavo-update-{}.safetensors", files_);
}
fs::path WeightUpdate::folder(int number) const { return root_ / std::to_string(number); }

Result<bool> WeightUpdate::add_part(std::span<const std::byte> bytes, std::uint64_t first,
                                    std::uint64_t all) {
  if (first == 0) incomplete_all_ = incomplete_bytes_ = 0;
  TRY_VOID(check_room(first == 0 ? all : 0));
  if (first != incomplete_bytes_ || (first > 0 && all != incomplete_all_) || bytes.size() > all - first)
    return invalid("Content-Range", "the next bytes must begin at {} of {}, got {} bytes at {} of {}",
                   incomplete_bytes_, first > 0 ? incomplete_all_ : all, bytes.size(), first, all);
  const fs::path path = next_file();
  TRY_VOID(append(path, bytes, first));
  incomplete_all_ = all;
  incomplete_bytes_ = first + bytes.size();
  if (incomplete_bytes_ < all) return false;
  incomplete_all_ = incomplete_bytes_ = 0;
  TRY_VOID(take_file(path, "the body"));
  return true;
}

Result<> WeightUpdate::add_file(const std::string& path) {
  if (incomplete_all_ > 0) return invalid("update_info", "a file that arrives in parts is incomplete");
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return field_failure("update_info.path", ErrorCode::not_found, "there is no file {}", path);
  const std::uint64_t size = fs::file_size(path, error);
  if (error) return field_failure("update_info.path", ErrorCode::io, "{}: {}", path, error.message());
  TRY_VOID(check_room(size));
  const fs::path copy = next_file();
  fs::copy_file(path, copy, fs::copy_options::overwrite_existing, error);
  if (error) return field_failure("update_info.path", ErrorCode::io, "{}: {}", path, error.message());
  return take_file(copy, path);
}

// Checks a complete file, and adds its tensors to received_.
Result<> WeightUpdate::take_file(const fs::path& path, const std::string& shown) {
  const auto taken = [&]() -> Result<> {
    TRY(const MappedFile file, MappedFile::open(path));
    TRY(const std::vector<StoredTensor> tensors, parse_safetensors(file.bytes(), shown));
    for (const StoredTensor& tensor : tensors)
      if (!current_.contains(tensor.name))
        return invalid("update_info", "{}: the model has no tensor {}", shown, tensor.name);
    received_bytes_ += file.bytes().size();
    for (const StoredTensor& tensor : tensors) received_[tensor.name] = path.filename().string();
    return {};
  }();
  std::error_code ignored;
  if (!taken) {
    fs::remove(path, ignored);
    return invalid("update_info", "{}", taken.error().message);
  }
  ++files_;
  return {};
}

Result<std::string> WeightUpdate::finish() {
  TRY_VOID(check_room(0));
  if (incomplete_all_ > 0)
    return invalid("update_info", "a file is incomplete: {} of {} bytes arrived", incomplete_bytes_,
                   incomplete_all_);
  if (received_.empty()) return invalid("update_info", "no tensor was sent since /start_weight_update");
  FileOf file_of = current_;
  for (const auto& [tensor, file] : received_) file_of[tensor] = file;
  ++folders_;
  TRY_VOID(write_folder(file_of));
  state_ = State::finished;
  return folder(folders_).string();
}

// Makes a folder with links to the received files that are used and to all files of the model's folder except
// indexes. keep() deletes the other received files.
Result<> WeightUpdate::write_folder(const FileOf& file_of) const {
  const fs::path to = folder(folders_);
  const std::set<std::string, std::less<>> used = files_of(file_of);
  try {
    fs::remove_all(to);
    fs::create_directory(to);
    for (const fs::directory_entry& entry : fs::directory_iterator(model_))
      if (!entry.path().filename().string().ends_with(".index.json"))
        fs::create_symlink(entry.path(), to / entry.path().filename());
    for (const fs::directory_entry& entry : fs::directory_iterator(root_ / "files"))
      if (used.contains(entry.path().filename().string()))
        fs::create_symlink(entry.path(), to / entry.path().filename());
  } catch (const fs::filesystem_error& error) {
    return failure(ErrorCode::io, "{}", error.what());
  }
  boost::json::object map;
  for (const auto& [tensor, file] : file_of) map.emplace(tensor, file);
  std::ofstream out(to / index_, std::ios::binary);
  out << boost::json::serialize(boost::json::object{{"weight_map", std::move(map)}}) << std::flush;
  if (!out) return failure(ErrorCode::io, "{}: cannot write", (to / index_).string());
  return {};
}

void WeightUpdate::keep() {
  for (auto& [tensor, file] : received_) current_[tensor] = std::move(file);
  std::error_code ignored;
  if (used_ > 0) fs::remove_all(folder(used_), ignored);
  used_ = folders_;
  drop();
}

void WeightUpdate::drop() {
  std::error_code ignored;
  if (folders_ != used_) fs::remove_all(folder(folders_), ignored);
  received_.clear();
  received_bytes_ = incomplete_bytes_ = incomplete_all_ = 0;
  state_ = State::idle;
  remove_unused();
}

void WeightUpdate::remove_unused() const {
  const std::set<std::string, std::less<>> used = files_of(current_);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_ / "files", ignored))
    if (!used.contains(entry.path().filename().string())) fs::remove(entry.path(), ignored);
}

}  // namespace octavo
