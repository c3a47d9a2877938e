#include "app/recorded_traffic.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include "base/hash.h"
#include "record/record_reader.h"

namespace octavo {
namespace {

// Numbers blocks. Equal blocks have the same number if the blocks before them are equal, too.
class BlockNumbers {
 public:
  explicit BlockNumbers(int block_tokens) : block_tokens_(static_cast<std::size_t>(block_tokens)) {}

  void append(std::span<const TokenId> prompt, std::vector<std::uint32_t>& blocks) {
    std::uint64_t before = 0;
    for (std::size_t first = 0; first < prompt.size(); first += block_tokens_) {
      const auto block = prompt.subspan(first, std::min(block_tokens_, prompt.size() - first));
      const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(block), before);
      const auto number = static_cast<std::uint32_t>(numbers_.size());
      blocks.push_back(numbers_.try_emplace(hash, number).first->second);
      before = hash.low;
    }
  }

 private:
  const std::size_t block_tokens_;
  std::map<Hash128, std::uint32_t> numbers_;
};

}  // namespace

bool is_recorded_traffic(const std::string& path) {
  const std::filesystem::path file(path);
  std::error_code error;
  return std::filesystem::is_directory(file, error) || file.filename().string().starts_with("requests-");
}

Result<fleet::Trace> read_recorded_traffic(const std::string& path, int block_tokens) {
  TRY(RecordReader reader, RecordReader::open(path));
  fleet::Trace trace{.block_tokens = block_tokens};
  BlockNumbers numbers(block_tokens);
  while (auto line = reader.next()) {
    if (!line->record) return invalid("trace", "{}: {}", line->location, line->record.error().message);
    const Record& record = *line->record;
    if (!record.request)
      return invalid("trace", "{}: has only hashes (--record-hashes-only)", line->location);
    const auto first_block = static_cast<std::uint32_t>(trace.blocks.size());
    numbers.append(record.request->prompt, trace.blocks);
    for (const RecordedAnswer& answer : record.answers)
      trace.requests.push_back({.arrival_us = record.arrived_us,
                                .input_tokens = static_cast<int>(record.request->prompt.size()),
                                .output_tokens = static_cast<int>(std::max<std::int64_t>(answer.count, 1)),
                                .first_block = first_block});
  }
  if (trace.requests.empty()) return invalid("trace", "{} has no records", path);
  trace.block_limit = std::ranges::max(trace.blocks) + 1;
  // Sorts by arrival, because records are in the order in which requests ended.
  std::ranges::stable_sort(trace.requests, {}, &fleet::TraceRequest::arrival_us);
  const std::int64_t begin_us = trace.requests.front().arrival_us;
  for (fleet::TraceRequest& request : trace.requests) request.arrival_us -= begin_us;
  return trace;
}

}  // namespace octavo
