#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "model/families/families.h"
#include "model/rope.h"

namespace octavo {
namespace {

constexpr std::array kFamilies = {
    Family{"GPT2LMHeadModel", describe_gpt2},
    Family{"GPTNeoXForCausalLM", describe_gpt_neox},
    Family{"Gemma2ForCausalLM", describe_gemma2},
    Family{"Gemma3ForCausalLM", describe_gemma3},
    Family{"Gemma3ForConditionalGeneration", describe_gemma3},
    Family{"GemmaForCausalLM", describe_gemma},
    Family{"Glm4ForCausalLM", describe_glm4},
    Family{"GlmForCausalLM", describe_glm},
    Family{"GraniteForCausalLM", describe_granite},
    Family{"LlamaForCausalLM", describe_llama},
    Family{"MistralForCausalLM", describe_mistral},
    Family{"Olmo2ForCausalLM", describe_olmo2},
    Family{"Phi3ForCausalLM", describe_phi3},
    Family{"Qwen2ForCausalLM", describe_qwen2},
    Family{"Qwen3ForCausalLM", describe_qwen3},
    Family{"StableLmForCausalLM", describe_stablelm},
};
static_assert(std::ranges::is_sorted(kFamilies, {}, &Family::architecture));

// Each number of a rotary embedding may be in its range and yet all of them make no sense together.
Result<> check_ropes(const ModelSpec& spec, const Config& config) {
  for (const RopeSpec& rope : spec.ropes) {
    const std::vector<float> frequencies = rope_frequencies(rope, spec.max_positions);
    if (std::ranges::all_of(frequencies, [](float f) { return f >= 0 && f < 1e6F; })) continue;
    return invalid("rope_scaling", "{} and rope_theta give frequencies beyond [0, 1e6)",
                   config.where("rope_scaling"));
  }
  return {};
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

Result<ModelSpec> describe(const Config& config) {
  TRY(const std::vector<std::string> names, config.texts("architectures"));
  if (names.empty()) {
    return invalid("architectures", "{} is missing; it must name the architecture",
                   config.where("architectures"));
  }
  const auto found = std::ranges::lower_bound(kFamilies, names[0], {}, &Family::architecture);
  if (found == kFamilies.end() || found->architecture != names[0]) {
    return field_failure("architectures", ErrorCode::unsupported,
                         "{}: \"{}\" is not supported; supported are {}", config.where("architectures"),
                         names[0], fmt::join(kFamilies | std::views::transform(&Family::architecture), ", "));
  }
  TRY(ModelSpec spec, found->describe(config));
  spec.architecture = names[0];
  TRY_VOID(check_ropes(spec, config));
  return spec;
}

}  // namespace octavo
