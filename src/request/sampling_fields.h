// Table of the SamplingParams fields that clients can set, one row per field. The JSON readers, the range
// checks, the OpenAPI document, the command-line flags and the generation defaults use this table.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/member_path.h"
#include "request/sampling_params.h"

namespace octavo {

template <class... Ts>
using SamplingMember = std::variant<MemberPath<SamplingParams, Ts>...>;

struct SamplingField {
  // The stage that the field affects.
  enum class Part : std::uint8_t { draws, tokens, end, reports, prompt };

  std::string_view name;  // name in JSON; flags spell the name with '-'
  SamplingMember<bool, int, double, std::optional<int>, std::optional<std::int64_t>, std::vector<TokenId>,
                 std::vector<std::string>, std::vector<std::pair<TokenId, float>>, RepetitionDetection>
      member;
  Part part;
  std::string_view help;
  // Allowed range of a number. validated() also checks SamplingLimits.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;    // whether the value must be above `least`
  std::string_view flag = {};  // flag of octavo generate, chat and run-batch; "": no flag
  bool generation_config = false;
  bool messages = false;           // whether /v1/messages also accepts the field
};

std::span<const SamplingField> sampling_fields();

const SamplingField* find_sampling_field(std::string_view name);

// Checks the ranges of all numbers. Returns invalid_argument with the field, the range and the value.
Result<> check_ranges(const SamplingParams& params);

}  // namespace octavo
