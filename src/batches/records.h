// Records of the store. The fields of a struct are the columns of its table, in the same order (store.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::batches {

// All times are in seconds since 1970. 0: the event has not happened.
struct StoredFile {
  std::int64_t number = 0;  // 1, 2, ... in the order of creation
  std::string id{};
  std::string owner{};  // owner_of() of the client; "" if the server does not distinguish clients
  std::string filename{};
  std::string purpose{};
  std::int64_t bytes = 0;
  std::int64_t created_at = 0;
  std::int64_t expires_at = 0;
};

inline constexpr std::string_view kInput = "batch";
inline constexpr std::string_view kOutput = "batch_output";
inline constexpr std::string_view kMessages = "message_batch";  // /v1/files hides files with this purpose

inline constexpr std::string_view kOpenai = "openai";
inline constexpr std::string_view kAnthropic = "anthropic";

// Values of Batch::status, as in OpenAI's API.
inline constexpr std::string_view kValidating = "validating";
inline constexpr std::string_view kInProgress = "in_progress";
inline constexpr std::string_view kCancelling = "cancelling";
inline constexpr std::string_view kFinalizing = "finalizing";
inline constexpr std::string_view kCompleted = "completed";
inline constexpr std::string_view kCancelled = "cancelled";
inline constexpr std::string_view kExpired = "expired";
inline constexpr std::string_view kFailed = "failed";

// Seconds from the creation of a batch until it expires.
inline constexpr std::int64_t kWindowS = 24 * 3'600;

struct Batch {
  std::int64_t number = 0;  // 1, 2, ... in the order of creation
  std::string id{};
  std::string owner{};
  std::string protocol{};
  std::string status{};
  std::string endpoint{};
  std::string input_file{};
  std::string output_file{};
  std::string error_file{};
  std::string metadata{};          // JSON object, or "" if the client gave none
  std::string errors{};            // JSON array, or "" if there are no errors
  std::int64_t output_keep_s = 0;  // lifetime of the output files in seconds; 0: unlimited
  std::int64_t created_at = 0;
  std::int64_t in_progress_at = 0;
  std::int64_t cancelling_at = 0;
  std::int64_t finalizing_at = 0;
  std::int64_t ended_at = 0;
  std::int64_t total = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;

  std::int64_t expires_at() const { return created_at + kWindowS; }
  bool ended() const {
    return status == kCompleted || status == kCancelled || status == kExpired || status == kFailed;
  }
};

// The answer to a line of a batch. Each line has at most one answer.
struct LineAnswer {
  std::string batch{};
  std::int64_t line = 0;  // line number in the input file, from 1
  std::string custom_id{};
  // HTTP status; 0: the line is not a valid request, and `body` is the error
  std::int64_t status = 0;
  std::string body{};
};

}  // namespace octavo::batches
