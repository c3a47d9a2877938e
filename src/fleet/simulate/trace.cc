#include "fleet/simulate/trace.h"

#include <algorithm>
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/random.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::int64_t kTokensMax = 1 << 28;
constexpr std::int64_t kMillisecondsMax = std::int64_t{1} << 40;  // 34 years
constexpr std::uintmax_t kFileBytesMax = std::uintmax_t{4} << 30;
constexpr double kCopyShiftUs = 60e6;

class LineReader {
 public:
  LineReader(const json::object& line, std::size_t number) : line_(line), number_(number) {}

  Result<std::int64_t> number(std::string_view field, std::int64_t max) const {
    const json::value* value = line_.if_contains(field);
    return value ? number(field, *value, max)
                 : Result<std::int64_t>(invalid(field, "line {}: {} is missing", number_, field));
  }

  Result<std::int64_t> number(std::string_view field, const json::value& value, std::int64_t max) const {
    boost::system::error_code error;
    const double read = value.to_number<double>(error);
    if (error || !(read >= 0 && read <= static_cast<double>(max)))
      return invalid(field, "line {}: {} must be a number from 0 to {}", number_, field, max);
    return static_cast<std::int64_t>(read);
  }

  Result<> blocks(std::size_t count, std::vector<std::uint32_t>& blocks) const {
    constexpr std::string_view kField = "hash_ids";
    const json::value* ids = line_.if_contains(kField);
    if (!ids || !ids->is_array() || ids->get_array().size() != count)
      return invalid(kField, "line {}: hash_ids must be a list of {} numbers, one for each block", number_,
                     count);
    for (const json::value& id : ids->get_array()) {
      TRY(const std::int64_t block, number(kField, id, std::numeric_limits<std::int32_t>::max()));
      blocks.push_back(static_cast<std::uint32_t>(block));
    }
    return {};
  }

 private:
  const json::object& line_;
  std::size_t number_;
};

// Returns a number that identifies the block among the blocks of all copies, if there are fewer than 2^64
// blocks.
std::uint64_t content_of(const Trace& trace, const TraceRequest& request, std::size_t block) {
  return trace.blocks[request.first_block + block] + std::uint64_t{request.copy} * trace.block_limit;
}

}  // namespace

Result<Trace> parse_mooncake_trace(std::string_view text, int block_tokens) {
  Trace trace{.block_tokens = block_tokens};
  json::parser parser;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    boost::system::error_code error;
    parser.reset();
    parser.write(line, error);
    if (error)
      return failure(ErrorCode::invalid_argument, "line {}: not valid JSON: {}", number, error.message());
    const json::value value = parser.release();
    if (!value.is_object()) return failure(ErrorCode::invalid_argument, "line {}: not a JSON object", number);

    const LineReader reader(value.get_object(), number);
    TRY(const std::int64_t arrival_ms, reader.number("timestamp", kMillisecondsMax));
    TRY(const std::int64_t input, reader.number("input_length", kTokensMax));
    TRY(const std::int64_t output, reader.number("output_length", kTokensMax));
    if (input == 0) return invalid("input_length", "line {}: input_length must be 1 or more", number);
    if (trace.requests.size() == kRequestsMax)
      return failure(ErrorCode::invalid_argument, "the trace has more than {} requests", kRequestsMax);
    trace.requests.push_back({.arrival_us = arrival_ms * 1000,
                              .input_tokens = static_cast<int>(input),
                              .output_tokens = static_cast<int>(std::max<std::int64_t>(output, 1)),
                              .first_block = static_cast<std::uint32_t>(trace.blocks.size())});
    TRY_VOID(
        reader.blocks(static_cast<std::size_t>((input + block_tokens - 1) / block_tokens), trace.blocks));
  }
  if (trace.requests.empty()) return failure(ErrorCode::invalid_argument, "the trace contains no requests");
  if (!trace.blocks.empty()) trace.block_limit = std::ranges::max(trace.blocks) + 1;
  std::ranges::stable_sort(trace.requests, {}, &TraceRequest::arrival_us);
  return trace;
}

Result<Trace> read_mooncake_trace(const std::string& path, int block_tokens) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return failure(ErrorCode::not_found, "{}: {}", path, error.message());
  if (bytes > kFileBytesMax)
    return failure(ErrorCode::invalid_argument, "{}: the file is longer than {} GiB", path,
                   kFileBytesMax >> 30);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return failure(ErrorCode::io, "{}: the file cannot be read", path);
  auto trace = parse_mooncake_trace(text, block_tokens);
  if (!trace) trace.error().message = fmt::format("{}: {}", path, trace.error().message);
  return trace;
}

Result<> change_trace(Trace& trace, const TraceChanges& changes) {
  std::vector<TraceRequest>& requests = trace.requests;
  if (changes.requests_max > 0 && changes.requests_max < requests.size())
    requests.resize(changes.requests_max);
  const auto copies = static_cast<std::uint32_t>(changes.copies);
  if (trace.closed && copies > 1)
    return invalid("copies", "must be 1 for traffic with `users`: increase the number of users instead");
  if (requests.size() > kRequestsMax / copies)
    return invalid("copies", "{} copies of {} requests are more than the limit of {}", copies,
                   requests.size(), kRequestsMax);
  const std::size_t once = requests.size();
  requests.reserve(once * copies);
  for (std::uint32_t copy = 1; copy < copies; ++copy) {
    const auto shift_us = static_cast<std::int64_t>(kCopyShiftUs * random_unit(changes.seed, copy));
    for (std::size_t i = 0; i < once; ++i) {
      TraceRequest& request = requests.emplace_back(requests[i]);
      request.arrival_us += shift_us;
      request.copy = copy;
    }
  }
  for (TraceRequest& request : requests)
    request.arrival_us = static_cast<std::int64_t>(static_cast<double>(request.arrival_us) / changes.speedup);
  if (!trace.closed) std::ranges::stable_sort(requests, {}, &TraceRequest::arrival_us);
  return {};
}

void write_tokens(const Trace& trace, const TraceRequest& request, std::vector<TokenId>& tokens) {
  tokens.resize(static_cast<std::size_t>(request.input_tokens));
  const auto size = static_cast<std::size_t>(trace.block_tokens);
  for (std::size_t begin = 0; begin < tokens.size(); begin += size) {
    const std::uint64_t first = content_of(trace, request, begin / size) * size;
    const std::size_t count = std::min(size, tokens.size() - begin);
    for (std::size_t i = 0; i < count; ++i)
      tokens[begin + i] = static_cast<TokenId>((first + i) & 0x7fffffff);  // token ids are not negative
  }
}

void write_text(const Trace& trace, const TraceRequest& request, std::string& text) {
  constexpr auto kStep = static_cast<std::size_t>(kTokensPerByte);
  const auto size = static_cast<std::size_t>(trace.block_tokens);
  text.resize((static_cast<std::size_t>(request.input_tokens) + kStep - 1) / kStep);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t token = i * kStep;
    if (i % 8 == 0) bits = random_bits(content_of(trace, request, token / size), token % size);
    text[i] = static_cast<char>(bits >> (i % 8 * 8));
  }
}

}  // namespace octavo::fleet
