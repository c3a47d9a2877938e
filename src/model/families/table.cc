#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "base/edit_distance.h"
#include "model/families/families.h"
#include "model/rope.h"

// All source files with families.
#define OCTAVO_FAMILIES(X) \
  X(afmoe)                 \
  X(alice_ai)              \
  X(apertus)               \
  X(bailing)               \
  X(bailing_v3)            \
  X(bailing_v3_vl)         \
  X(bamba)                 \
  X(bart)                  \
  X(beam)                  \
  X(bert)                  \
  X(bloom)                 \
  X(chatglm)               \
  X(clip_text)             \
  X(cohere)                \
  X(cohere2_vision)        \
  X(colqwen)               \
  X(cosmos3_edge)          \
  X(dbrx)                  \
  X(deepseek)              \
  X(deepseek_kin)          \
  X(deepseek_v4)           \
  X(domyn_edge)            \
  X(dory)                  \
  X(dots_ocr)              \
  X(ernie)                 \
  X(falcon)                \
  X(gemma)                 \
  X(gemma3_vision)         \
  X(gemma4)                \
  X(gemma4_vision)         \
  X(glm)                   \
  X(glm_asr)               \
  X(glm_vision)            \
  X(gpt2)                  \
  X(gpt_neox)              \
  X(gpt_oss)               \
  X(gptj)                  \
  X(granite)               \
  X(hrm_text)              \
  X(hunyuan)               \
  X(hy_v4)                 \
  X(idefics3)              \
  X(internvl)              \
  X(kimi_linear)           \
  X(kimi_vl)               \
  X(laguna)                \
  X(lfm2)                  \
  X(lfm2_vl)               \
  X(llama)                 \
  X(llama4)                \
  X(llama4_vision)         \
  X(llava)                 \
  X(longcat)               \
  X(loop_coder)            \
  X(mamba)                 \
  X(mimo_v2)               \
  X(minimax)               \
  X(minimax_m3_vl)         \
  X(mistral)               \
  X(modernbert)            \
  X(mpt)                   \
  X(muse_glimmer)          \
  X(nemotron)              \
  X(nemotron_h)            \
  X(nemotron_nas)          \
  X(nomic_bert)            \
  X(olmo)                  \
  X(opt)                   \
  X(ovis)                  \
  X(paddleocr_vl)          \
  X(paligemma)             \
  X(phi)                   \
  X(phi3)                  \
  X(phi3_vision)           \
  X(phi4_multimodal)       \
  X(phi4_reasoning_vision) \
  X(pixtral)               \
  X(plamo3)                \
  X(qwen)                  \
  X(qwen2_audio)           \
  X(qwen3_vl)              \
  X(qwen_towers)           \
  X(qwen_vl)               \
  X(radio)                 \
  X(readers)               \
  X(rwkv7)                 \
  X(solar)                 \
  X(stablelm)              \
  X(starcoder)             \
  X(step1)                 \
  X(step3)                 \
  X(step3p5)               \
  X(t5)                    \
  X(telechat2)             \
  X(voxtral)               \
  X(whisper)               \
  X(zamba2)

namespace octavo {

#define OCTAVO_DECLARE(file) std::span<const Family> file##_families();
OCTAVO_FAMILIES(OCTAVO_DECLARE)
#undef OCTAVO_DECLARE

std::span<const Family> families() {
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> all;
#define OCTAVO_ADD(file) all.insert(all.end(), file##_families().begin(), file##_families().end());
    OCTAVO_FAMILIES(OCTAVO_ADD)
#undef OCTAVO_ADD
    std::ranges::sort(all, {}, &Family::architecture);
    return all;
  }();
  return kFamilies;
}

namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return lower;
}

// Returns an error if the numbers of a rotary embedding contradict each other, although each is in its range.
Result<> check_ropes(const ModelSpec& spec, const Config& config) {
  for (const RopeSpec& rope : spec.ropes) {
    const std::vector<float> frequencies = rope_frequencies(rope, spec.max_positions);
    if (std::ranges::all_of(frequencies, [](float f) { return f >= 0 && f < 1e6F; })) continue;
    return invalid("rope_scaling", "{} and rope_theta give frequencies that are not in [0, 1e6)",
                   config.where("rope_scaling"));
  }
  return {};
}

// Returns the most similar architecture names, the most similar first.
std::vector<std::string_view> nearest(std::string_view name) {
  constexpr std::size_t kShown = 5, kLongest = 100;
  const auto distance = [name = lower_case(name.substr(0, kLongest))](std::string_view known) {
    return edit_distance(lower_case(known), name);
  };
  std::vector<std::pair<std::size_t, std::string_view>> names;
  for (const Family& family : families())
    names.emplace_back(distance(family.architecture), family.architecture);
  std::ranges::partial_sort(names, names.begin() + kShown);
  std::vector<std::string_view> found;
  for (std::size_t i = 0; i < kShown; ++i) found.push_back(names[i].second);
  return found;
}

// Reads `architectures`. If the file has none, text_config may have the language model's.
Result<std::vector<std::string>> architectures_of(const Config& config) {
  TRY(const std::vector<std::string> whole, config.outer().texts("architectures"));
  return whole.empty() ? config.texts("architectures") : whole;
}

}  // namespace

Result<ModelSpec> describe(const Config& config) {
  TRY(const std::vector<std::string> names, architectures_of(config));
  if (names.empty()) {
    return invalid("architectures", "{} is missing, but must name the architecture",
                   config.where("architectures"));
  }
  const auto found = std::ranges::lower_bound(families(), names[0], {}, &Family::architecture);
  if (found == families().end() || found->architecture != names[0]) {
    return field_failure(
        "architectures", ErrorCode::unsupported,
        "{}: \"{}\" is not supported; of the {} supported architectures, the most similar names are {}",
        config.where("architectures"), names[0], families().size(), fmt::join(nearest(names[0]), ", "));
  }
  Config complete = config;
  complete.set_defaults(field_defaults(names[0]));
  TRY(ModelSpec spec, found->describe(complete));
  spec.architecture = names[0];
  TRY_VOID(check_ropes(spec, config));
  return spec;
}

}  // namespace octavo
