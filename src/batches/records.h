// What the store keeps. The fields are the columns of tables, in order (store.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::batches {

// Times are seconds since 1970; 0: not yet, or never.
struct StoredFile {
  std::int64_t number = 0;  // order of creation
  std::string id{};
  std::string owner{};  // hash of the client; "": the server does not tell clients apart
  std::string filename{};
  std::string purpose{};
  std::int64_t bytes = 0;
  std::int64_t created_at = 0;
  std::int64_t expires_at = 0;
};

// Purposes of files.
inline constexpr std::string_view kInput = "batch";
inline constexpr std::string_view kOutput = "batch_output";
inline constexpr std::string_view kMessages = "message_batch";  // hidden from /v1/files

// Protocols of batches.
inline constexpr std::string_view kOpenai = "openai";
inline constexpr std::string_view kAnthropic = "anthropic";

// Statuses of batches: OpenAI's.
inline constexpr std::string_view kValidating = "validating";
inline constexpr std::string_view kInProgress = "in_progress";
inline constexpr std::string_view kCancelling = "cancelling";
inline constexpr std::string_view kFinalizing = "finalizing";
inline constexpr std::string_view kCompleted = "completed";
inline constexpr std::string_view kCancelled = "cancelled";
inline constexpr std::string_view kExpired = "expired";
inline constexpr std::string_view kFailed = "failed";

// Time from the creation of a batch to its end at the latest.
inline constexpr std::int64_t kWindowS = 24 * 3'600;

struct Batch {
  std::int64_t number = 0;  // order of creation
  std::string id{};
  std::string owner{};
  std::string protocol{};
  std::string status{};
  std::string endpoint{};
  std::string input_file{};
  std::string output_file{};       // "": none
  std::string error_file{};        // "": none
  std::string metadata{};          // JSON object; "": none
  std::string errors{};            // JSON array; "": none
  std::int64_t output_keep_s = 0;  // lifetime of its output files; 0: no limit
  std::int64_t created_at = 0;
  std::int64_t in_progress_at = 0;
  std::int64_t cancelling_at = 0;
  std::int64_t finalizing_at = 0;
  std::int64_t ended_at = 0;  // when it got its last status
  std::int64_t total = 0;     // lines
  std::int64_t completed = 0;
  std::int64_t failed = 0;

  std::int64_t expires_at() const { return created_at + kWindowS; }
  bool ended() const {
    return status == kCompleted || status == kCancelled || status == kExpired || status == kFailed;
  }
};

// The answer to a line. Each line of a batch has at most one.
struct LineAnswer {
  std::string batch{};
  std::int64_t line = 0;  // in the input file, from 1
  std::string custom_id{};
  std::int64_t status = 0;  // HTTP status; 0: the line is no request, and `body` says why
  std::string body{};       // JSON
};

}  // namespace octavo::batches
