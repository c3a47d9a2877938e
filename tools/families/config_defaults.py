#!/usr/bin/env python3
"""Writes src/model/families/defaults.cc: what transformers takes for each field of config.json that a file may leave out.

    pip install transformers; tools/families/config_defaults.py [--check]

For each architecture the fields that the families read, as the configuration class of transformers has them when nothing is
given. A field whose default is None is left out: the families derive it (key heads from query heads, a head's size from the
width), or it stands for "not there". --check writes nothing and fails when the table is not what would be written.
"""

import importlib
import json
import pathlib
import re
import sys

import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES = ROOT / "src/model/families"
FILE = FAMILIES / "defaults.cc"

# Architecture: module and class of its configuration.
CLASSES = {
    "BertForSequenceClassification": ("bert", "BertConfig"),
    "BertModel": ("bert", "BertConfig"),
    "DeepseekV2ForCausalLM": ("deepseek_v2", "DeepseekV2Config"),
    "DeepseekV3ForCausalLM": ("deepseek_v3", "DeepseekV3Config"),
    "Dots1ForCausalLM": ("dots1", "Dots1Config"),
    "GPT2LMHeadModel": ("gpt2", "GPT2Config"),
    "GPTNeoXForCausalLM": ("gpt_neox", "GPTNeoXConfig"),
    "Gemma2ForCausalLM": ("gemma2", "Gemma2Config"),
    "Gemma3ForCausalLM": ("gemma3", "Gemma3TextConfig"),
    "Gemma3ForConditionalGeneration": ("gemma3", "Gemma3TextConfig"),
    "GemmaForCausalLM": ("gemma", "GemmaConfig"),
    "Glm4ForCausalLM": ("glm4", "Glm4Config"),
    "Glm4MoeForCausalLM": ("glm4_moe", "Glm4MoeConfig"),
    "Glm4MoeLiteForCausalLM": ("glm4_moe_lite", "Glm4MoeLiteConfig"),
    "GlmForCausalLM": ("glm", "GlmConfig"),
    "GptOssForCausalLM": ("gpt_oss", "GptOssConfig"),
    "GraniteForCausalLM": ("granite", "GraniteConfig"),
    "GraniteMoeForCausalLM": ("granitemoe", "GraniteMoeConfig"),
    "Idefics3ForConditionalGeneration": ("llama", "LlamaConfig"),
    "LlamaForCausalLM": ("llama", "LlamaConfig"),
    "MistralForCausalLM": ("mistral", "MistralConfig"),
    "MixtralForCausalLM": ("mixtral", "MixtralConfig"),
    "Olmo2ForCausalLM": ("olmo2", "Olmo2Config"),
    "OlmoeForCausalLM": ("olmoe", "OlmoeConfig"),
    "Phi3ForCausalLM": ("phi3", "Phi3Config"),
    "Qwen2ForCausalLM": ("qwen2", "Qwen2Config"),
    "Qwen2MoeForCausalLM": ("qwen2_moe", "Qwen2MoeConfig"),
    "Qwen3ForCausalLM": ("qwen3", "Qwen3Config"),
    "Qwen3MoeForCausalLM": ("qwen3_moe", "Qwen3MoeConfig"),
    "Qwen3NextForCausalLM": ("qwen3_next", "Qwen3NextConfig"),
    "Qwen3_5ForCausalLM": ("qwen3_5", "Qwen3_5TextConfig"),
    "Qwen3_5ForConditionalGeneration": ("qwen3_5", "Qwen3_5TextConfig"),
    "Qwen3_5MoeForCausalLM": ("qwen3_5_moe", "Qwen3_5MoeTextConfig"),
    "Qwen3_5MoeForConditionalGeneration": ("qwen3_5_moe", "Qwen3_5MoeTextConfig"),
    "RobertaForSequenceClassification": ("roberta", "RobertaConfig"),
    "RobertaModel": ("roberta", "RobertaConfig"),
    "SmolVLMForConditionalGeneration": ("llama", "LlamaConfig"),
    "StableLmForCausalLM": ("stablelm", "StableLmConfig"),
    "WhisperForConditionalGeneration": ("whisper", "WhisperConfig"),
    "XLMRobertaForSequenceClassification": ("xlm_roberta", "XLMRobertaConfig"),
    "XLMRobertaModel": ("xlm_roberta", "XLMRobertaConfig"),
}

# What a class that nests another gives it.
GIVEN = {architecture: {"rms_norm_eps": 1e-5} for architecture in ("Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration")}

# What older files call the numbers that transformers keeps in rope_parameters.
ROPE_NAMES = {"rope_theta": "rope_theta", "partial_rotary_factor": "partial_rotary_factor"}
ROPE_NAMES_OF = {"gpt_neox": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"}}


# Fields that a configuration's class has not got: as the published files have them, or as the class derives them.
DERIVED = {"glm4_moe": {"head_dim": lambda config: 128},  # else half of 42 elements would turn, which no code can do
           "glm4_moe_lite": {"first_k_dense_replace": lambda config: config.mlp_layer_types.index("sparse")}}


def fields_that_families_read():
    """Every string in quotes in src/model/families that could be a field's name."""
    sources = [path.read_text() for path in FAMILIES.glob("*") if path != FILE]
    return set(re.findall(r'"([a-z_0-9]+)"', "\n".join(sources)))


def defaults(module, name, read):
    kind = getattr(importlib.import_module(f"transformers.models.{module}"), name)
    found = {field: getattr(kind, field) for field in sorted(read) if hasattr(kind, field)}
    found = {field: value for field, value in found.items() if isinstance(value, (bool, int, float, str))}
    found |= {field: derive(kind()) for field, derive in DERIVED.get(module, {}).items()}
    rope = getattr(kind(), "rope_parameters", None) or {}
    if "full_attention" in rope:  # Gemma 3
        found["rope_theta"] = rope["full_attention"]["rope_theta"]
        found["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = {}
    for parameter, field in ROPE_NAMES_OF.get(module, ROPE_NAMES).items():
        if parameter in rope:
            found[field] = rope[parameter]
    return found


def text():
    read = fields_that_families_read()
    rows = []
    for architecture, (module, name) in sorted(CLASSES.items()):
        found = defaults(module, name, read) | GIVEN.get(architecture, {})
        fields = ",\n         ".join(f'"{field}": {json.dumps(found[field])}' for field in sorted(found))
        rows.append(f'    Defaults{{"{architecture}",\n     R"({{{fields}}})"}},\n')
    return f"""// Made by tools/families/config_defaults.py from transformers {transformers.__version__}: do not edit.
#include <algorithm>
#include <array>

#include "model/families/families.h"

namespace octavo {{
namespace {{

struct Defaults {{
  std::string_view architecture;
  std::string_view fields;  // JSON
}};

constexpr std::array kDefaults = {{
{"".join(rows)}}};
static_assert(std::ranges::is_sorted(kDefaults, {{}}, &Defaults::architecture));

}}  // namespace

std::string_view field_defaults(std::string_view architecture) {{
  const auto* found = std::ranges::lower_bound(kDefaults, architecture, {{}}, &Defaults::architecture);
  return found != kDefaults.end() && found->architecture == architecture ? found->fields : "{{}}";
}}

}}  // namespace octavo
"""


def main():
    made = text()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(made)
    elif FILE.read_text().split("\n", 1)[1] != made.split("\n", 1)[1]:  # whatever the version
        sys.exit(f"{FILE.relative_to(ROOT)} is not what transformers {transformers.__version__} gives: run {sys.argv[0]}")


if __name__ == "__main__":
    main()
