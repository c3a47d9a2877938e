// Decoders that read texts instead of continuing them: the same networks without their output matrix, stored
// by transformers' base classes, or with a classifier in its place.
#pragma once

#include "model/families/families.h"

namespace octavo {

// What is left of a decoder's spec where it makes a vector of the last token.
ModelSpec as_embedder(ModelSpec spec);

// Scores of labels by the last token's vector: a matrix "score" without biases or, with classifier_token_ids,
// these rows of the output matrix (vLLM's classifier_from_token).
Result<ModelSpec> as_classifier(ModelSpec spec, const Config& config);

// For a row of the table of families.
template <Result<ModelSpec> (*describe_decoder)(const Config&)>
Result<ModelSpec> describe_embedder(const Config& config) {
  TRY(ModelSpec spec, describe_decoder(config));
  return as_embedder(std::move(spec));
}

template <Result<ModelSpec> (*describe_decoder)(const Config&)>
Result<ModelSpec> describe_decoder_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_decoder(config));
  return as_classifier(std::move(spec), config);
}

// Qwen2.5-Math-PRM (Zhang et al., 2025): scores of labels of each token.
Result<ModelSpec> describe_qwen2_process_reward(const Config& config);
// Qwen2.5-Math-RM (Yang et al., 2024) and InternLM2-Reward (Cai et al., 2024): one score of each token.
Result<ModelSpec> describe_qwen2_reward(const Config& config);
Result<ModelSpec> describe_internlm2_reward(const Config& config);

// Llama whose tokens see both ways (NVIDIA's retrievers of the Nemotron family, 2025).
Result<ModelSpec> describe_llama_both_ways(const Config& config);
Result<ModelSpec> describe_llama_both_ways_classifier(const Config& config);

// EuroBERT (Boizard et al., "EuroBERT: Scaling Multilingual Encoders for European Languages", 2025): Llama whose
// tokens see both ways.
Result<ModelSpec> describe_eurobert(const Config& config);

// Jina v3 as its authors have it, under XLM-RoBERTa's name (nomic_bert.cc).
Result<ModelSpec> describe_first_jina_v3(const Config& config);

// The encoder of T5 (t5.cc).
Result<ModelSpec> describe_t5_encoder(const Config& config);

// voyage-4-nano (Voyage AI, 2026): Qwen3 whose tokens see both ways, and a matrix behind their mean.
Result<ModelSpec> describe_voyage(const Config& config);

// Scores of labels of each token, such as kinds of names.
Result<ModelSpec> describe_bert_token_classifier(const Config& config);
Result<ModelSpec> describe_roberta_token_classifier(const Config& config);
Result<ModelSpec> describe_modernbert_token_classifier(const Config& config);

}  // namespace octavo
