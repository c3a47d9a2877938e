// Configuration (spec) and tensor names of attention to blocks of tokens.
#pragma once

#include <string>

#include "model/blocks/attention.h"

namespace octavo {

// Slot, i32 [tokens, kv_heads * AttentionMask::chosen_blocks]: ChooseBlocksArgs::chosen
struct ChosenBlocks {};

// Attention whose queries see some blocks of tokens (MiniMax-M3, 2026; ChooseBlocksArgs). Index queries, one
// for each KV head, and index keys have norms and the RoPE of the attention's queries and keys.
struct SparseAttention {
  Attention attention;
  int index_dim = 0;
  int local = 1;  // see ChooseBlocksArgs::local

  struct Names {
    std::string q = "self_attn.index_q_proj";
    std::string k = "self_attn.index_k_proj";
    std::string q_norm = "self_attn.index_q_norm";
    std::string k_norm = "self_attn.index_k_norm";
  };
};

}  // namespace octavo
