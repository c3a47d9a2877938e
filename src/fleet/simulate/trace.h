// Traffic for simulations: arrival times, lengths, and common prefixes of prompts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "request/sampling_params.h"

namespace octavo::fleet {

inline constexpr std::size_t kRequestsMax = 50'000'000;

inline constexpr std::uint32_t kNoRequest = ~std::uint32_t{0};

struct TraceRequest {
  // arrival time, or for a request with `follows`, the time after the end of the earlier request
  std::int64_t arrival_us = 0;
  int input_tokens = 0;
  int output_tokens = 0;
  std::uint32_t first_block = 0;       // index of the prompt's first block in Trace::blocks
  std::uint32_t copy = 0;              // index of the copy, see TraceChanges::copies
  std::uint32_t follows = kNoRequest;  // index of the request after whose end this request arrives
};

// A prompt is a sequence of blocks of `block_tokens` tokens. The last block may be shorter. Blocks with the
// same number in the same copy have the same tokens.
struct Trace {
  int block_tokens = 512;
  std::vector<std::uint32_t> blocks = {};
  std::uint32_t block_limit = 0;            // greater than all block numbers
  std::vector<TraceRequest> requests = {};  // sorted by arrival
  bool closed = false;  // users wait for answers, so requests have `follows` and are not sorted by arrival
};

// Parses Mooncake's format, in which each line is a JSON object {"timestamp": ms, "input_length": tokens,
// "output_length": tokens, "hash_ids": [a number for each block of 512 tokens]}. Ignores all further fields.
// 0 output tokens count as 1. Errors report the line and the field.
Result<Trace> parse_mooncake_trace(std::string_view text, int block_tokens);
Result<Trace> read_mooncake_trace(const std::string& path, int block_tokens);

struct TraceChanges {
  std::size_t requests_max = 0;  // keep only the first n requests; 0: all requests
  double speedup = 1;            // factor of the arrival rate
  // Number of copies of the traffic. Each copy has different prompts, and starts at a random time within a
  // minute.
  int copies = 1;
  std::uint64_t seed = 0;
};
Result<> change_trace(Trace& trace, const TraceChanges& changes);

// Writes generated tokens for the prompt. Equal blocks have equal tokens.
void write_tokens(const Trace& trace, const TraceRequest& request, std::vector<TokenId>& tokens);

// Writes the prompt as text, for policies that compare text. One byte represents kTokensPerByte tokens,
// because only ratios of lengths matter.
inline constexpr int kTokensPerByte = 8;
// ratio of the bytes of a real prompt (about four per token) to the bytes of this text
inline constexpr int kTextScale = 4 * kTokensPerByte;
void write_text(const Trace& trace, const TraceRequest& request, std::string& text);

}  // namespace octavo::fleet
