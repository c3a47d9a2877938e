// Traffic: arrival times, lengths, and common parts of prompts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "request/sampling_params.h"

namespace octavo::fleet {

inline constexpr std::size_t kRequestsMax = 50'000'000;  // of a trace

inline constexpr std::uint32_t kNoRequest = ~std::uint32_t{0};

struct TraceRequest {
  std::int64_t arrival_us = 0;  // for a follower: time after the end of the earlier request
  int input_tokens = 0;
  int output_tokens = 0;
  std::uint32_t first_block = 0;  // of its prompt, in Trace::blocks
  std::uint32_t copy = 0;         // see change_trace
  std::uint32_t follows = kNoRequest;  // index of an earlier request, whose end starts this one
};

// A request's prompt is a sequence of blocks of `block_tokens` tokens; the last one is cut at the prompt's
// end. Blocks with equal numbers in one copy have equal tokens.
struct Trace {
  int block_tokens = 512;
  std::vector<std::uint32_t> blocks = {};
  std::uint32_t block_limit = 0;            // upper bound of the numbers (exclusive)
  std::vector<TraceRequest> requests = {};  // by arrival
  bool closed = false;  // users wait for answers: requests follow others and are not sorted by time
};

// Mooncake's format: a JSON object per line, {"timestamp": ms, "input_length": tokens, "output_length":
// tokens, "hash_ids": [a number for each block of 512 tokens]}. Other fields are ignored; 0 output tokens
// count as 1. Errors name line and field.
Result<Trace> parse_mooncake_trace(std::string_view text, int block_tokens);
Result<Trace> read_mooncake_trace(const std::string& path, int block_tokens);

struct TraceChanges {
  std::size_t requests_max = 0;  // number of first requests; 0 for all
  double speedup = 1;            // factor of the rate
  // Number of copies of the traffic: each has its own prompts, and starts up to a minute later, drawn from
  // the seed.
  int copies = 1;
  std::uint64_t seed = 0;
};
// Errors name the field.
Result<> change_trace(Trace& trace, const TraceChanges& changes);

// The prompt as generated tokens: equal for equal blocks.
void write_tokens(const Trace& trace, const TraceRequest& request, std::vector<TokenId>& tokens);

// The prompt as text, for policies that read text: a byte for kTokensPerByte tokens, since the policies
// compare only ratios of lengths.
inline constexpr int kTokensPerByte = 8;
inline constexpr int kTextScale = 4 * kTokensPerByte;  // a token has four bytes of real text
void write_text(const Trace& trace, const TraceRequest& request, std::string& text);

}  // namespace octavo::fleet
