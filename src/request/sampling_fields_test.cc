#include "request/sampling_fields.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace octavo {
namespace {

template <class T>
std::string error_of(MemberPath<SamplingParams, T> member, std::type_identity_t<T> value) {
  SamplingParams params;
  member(params) = value;
  const auto checked = check_ranges(params);
  return checked ? "" : checked.error().field + " " + checked.error().message;
}

TEST(SamplingFields, NamesAndFlagsAreUnique) {
  std::set<std::string_view> names, flags;
  for (const SamplingField& field : sampling_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(field.flag.empty() || flags.insert(field.flag).second) << field.flag;
    EXPECT_FALSE(field.help.empty()) << field.name;
    EXPECT_EQ(find_sampling_field(field.name), &field);
  }
  EXPECT_EQ(find_sampling_field("max_tokens_"), nullptr);
}

TEST(SamplingFields, ErrorsHaveNameRangeAndValue) {
  EXPECT_TRUE(check_ranges({}).has_value());
  EXPECT_EQ(error_of(member_path<&SamplingParams::temperature>, 2.5),
            "temperature must be in [0, 2], got 2.5");
  EXPECT_EQ(error_of(member_path<&SamplingParams::top_p>, 0.0), "top_p must be in (0, 1], got 0");
  EXPECT_EQ(error_of(member_path<&SamplingParams::top_p>, 1.0), "");
  EXPECT_EQ(error_of(member_path<&SamplingParams::top_k>, -2), "top_k must be at least -1, got -2");
  EXPECT_EQ(error_of(member_path<&SamplingParams::logprobs, &LogprobRequest::prompt>, std::optional(-2)),
            "prompt_logprobs must be at least -1, got -2");
  EXPECT_EQ(error_of(member_path<&SamplingParams::penalties, &Penalties::repetition>, 0.0),
            "repetition_penalty must be in [1e-06, 1000000], got 0");
}

}  // namespace
}  // namespace octavo
