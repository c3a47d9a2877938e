#include "record/record_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/out_of_memory.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

// Estimates the memory of a queued record, in bytes.
std::int64_t bytes_of(const Record& record) {
  std::int64_t tokens = 0, bytes = sizeof(record);
  if (record.request) {
    const Request& request = *record.request;
    const SamplingParams& sampling = request.sampling;
    tokens += std::ssize(request.prompt) + std::ssize(request.eos_ids) + std::ssize(sampling.stop_token_ids) +
              std::ssize(sampling.tokens.allowed_token_ids) +
              std::ssize(sampling.tokens.begin_suppress_tokens) + 2 * std::ssize(sampling.tokens.logit_bias);
    for (const AnswerSoFar& begun : request.answers_so_far) tokens += std::ssize(begun.tokens);
    for (const auto& word : sampling.tokens.bad_word_ids)
      bytes += static_cast<std::int64_t>(sizeof word + word.size() * sizeof(TokenId));
    for (const auto* texts : {&sampling.stop, &sampling.tokens.bad_words})
      for (const std::string& text : *texts) bytes += static_cast<std::int64_t>(sizeof text + text.size());
    for (const MediaPart& part : request.media)
      bytes += static_cast<std::int64_t>(sizeof part + part.bytes.size());
    if (request.grammar) bytes += std::ssize(request.grammar->text);
  }
  for (const RecordedAnswer& answer : record.answers) tokens += std::ssize(answer.tokens);
  return bytes + tokens * static_cast<std::int64_t>(sizeof(TokenId));
}

bool is_of_records(const fs::path& path) {
  return path.filename().string().starts_with("requests-") && path.extension() == ".jsonl";
}

}  // namespace

Result<std::vector<fs::path>> record_files(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return std::vector<fs::path>{path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    if (is_of_records(entry.path())) files.push_back(entry.path());
  if (error) return failure(ErrorCode::not_found, "cannot read {}: {}", path, error.message());
  if (files.empty()) return failure(ErrorCode::not_found, "{} contains no file requests-*.jsonl", path);
  std::ranges::sort(files);  // file names begin with the time
  return files;
}

Result<std::unique_ptr<RecordLog>> RecordLog::open(RecordOptions options, RecordCounters& counters) {
  std::error_code error;
  fs::create_directories(options.dir, error);
  std::unique_ptr<RecordLog> log(new RecordLog(std::move(options), counters));
  if (!log->start_file())
    return field_failure("record", ErrorCode::io, "cannot write to {}: {}", log->options_.dir,
                         std::strerror(errno));
  const std::int64_t bytes_max = log->options_.bytes_max;
  log->delete_oldest(bytes_max - bytes_max / kFiles);
  log->thread_ = std::thread([self = log.get()] { self->write_all(); });
  return log;
}

RecordLog::~RecordLog() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (file_ >= 0) close(file_);
}

void RecordLog::add(Record&& record) noexcept {
  const std::int64_t bytes = bytes_of(record);
  const std::lock_guard lock(mutex_);
  const auto queued = within_memory([&]() -> Result<> {
    if (waiting_bytes_ + bytes > kWaitingBytesMax) return failure(ErrorCode::resource_exhausted, "full");
    waiting_.push_back(std::move(record));
    return {};
  });
  if (!queued) return drop(RecordDrop::queue);
  waiting_bytes_ += bytes;
  arrived_.notify_one();
}

void RecordLog::write_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Record record = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const std::int64_t bytes = bytes_of(record);
    const Result<> written = within_memory([&]() -> Result<> {
      write(record_line(std::move(record), options_.hashes_only));
      return {};
    });
    if (!written) drop(RecordDrop::queue);
    lock.lock();
    waiting_bytes_ -= bytes;
  }
}

void RecordLog::write(const std::string& line) {
  const std::int64_t bytes = std::ssize(line) + 1, file_max = options_.bytes_max / kFiles;
  if (bytes > file_max) return drop(RecordDrop::size);
  if (file_bytes_ + bytes > file_max) {
    delete_oldest(options_.bytes_max - file_max);
    close(std::exchange(file_, -1));
  }
  if ((file_ < 0 && !start_file()) || !append(line + '\n')) {
    if (!std::exchange(failing_, true))
      log_warning("recording requests in {} stopped: {}", options_.dir, std::strerror(errno));
    return drop(RecordDrop::disk);
  }
  if (std::exchange(failing_, false)) log_info("recording requests in {} works again", options_.dir);
  file_bytes_ += bytes;
  ++counters_.written;
}

bool RecordLog::start_file() {
  const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto us = now.time_since_epoch().count() % 1'000'000;
  const std::string name = fmt::format("requests-{:%Y%m%dT%H%M%S}.{:06}-{}.jsonl",
                                       fmt::gmtime(std::chrono::system_clock::to_time_t(now)), us, getpid());
  file_ = ::open((fs::path(options_.dir) / name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  file_bytes_ = 0;
  return file_ >= 0;
}

// Returns false if the write failed. Removes a partly written line.
bool RecordLog::append(const std::string& line) {
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t bytes = ::write(file_, line.data() + written, line.size() - written);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      const int error = errno;
      if (ftruncate(file_, file_bytes_) != 0 || lseek(file_, file_bytes_, SEEK_SET) < 0)
        close(std::exchange(file_, -1));
      errno = error;
      return false;
    }
    written += static_cast<std::size_t>(bytes);
  }
  return true;
}

// Deletes the oldest files until at most `bytes_left` bytes remain.
void RecordLog::delete_oldest(std::int64_t bytes_left) {
  const auto files = record_files(options_.dir);
  if (!files) return;
  std::error_code error;
  for (auto file = files->rbegin(); file != files->rend(); ++file) {
    const auto size = fs::file_size(*file, error);
    bytes_left -= error ? 0 : static_cast<std::int64_t>(size);
    if (bytes_left < 0) fs::remove(*file, error);
  }
}

}  // namespace octavo
