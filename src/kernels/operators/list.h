// The list of all operators: X(name, argument type, backends). `all` means that every backend supports the
// operator, `host` that all backends except CUDA do, `device` that all except the CPU's do. Ops and Need
// (ops.h), the declarations and tables of the backends, and the timer of `octavo bench step` are generated
// from the list. Every supporting backend must define the operator, and operators/*.cc must define check()
// for its arguments; otherwise linking fails.
#pragma once

#define OCTAVO_OPERATORS(X)                     \
  X(own_ids, OwnIdsArgs, all)                   \
  X(embed, EmbedArgs, all)                      \
  X(keep_own_rows, KeepOwnRowsArgs, all)        \
  X(add_norm, AddNormArgs, all)                 \
  X(sum_squares, SumSquaresArgs, all)           \
  X(norm_by_squares, NormBySquaresArgs, all)    \
  X(matmul, MatmulArgs, all)                    \
  X(activate, ActivateArgs, all)                \
  X(keep_tail, KeepTailArgs, all)               \
  X(scale_rows, ScaleRowsArgs, all)             \
  X(clamp, ClampArgs, all)                      \
  X(softmax, SoftmaxArgs, all)                  \
  X(route, RouteArgs, all)                      \
  X(grouped_matmul, GroupedMatmulArgs, all)     \
  X(combine, CombineArgs, all)                  \
  X(add_rows, AddRowsArgs, all)                 \
  X(angles, AnglesArgs, all)                    \
  X(qkv_store, QkvStoreArgs, all)               \
  X(head_matmul, HeadMatmulArgs, all)           \
  X(latent_store, LatentStoreArgs, all)         \
  X(choose_tokens, ChooseTokensArgs, all)       \
  X(choose_blocks, ChooseBlocksArgs, all)       \
  X(attention, AttentionArgs, all)              \
  X(rotate_ends, RotateEndsArgs, all)           \
  X(store_rows, StoreRowsArgs, all)             \
  X(gate, GateArgs, all)                        \
  X(causal_conv, ConvArgs, all)                 \
  X(gated_delta, GatedDeltaArgs, all)           \
  X(scan, ScanArgs, all)                        \
  X(channel_scan, ChannelScanArgs, all)         \
  X(wkv, WkvArgs, all)                          \
  X(compress, CompressArgs, all)                \
  X(collapse_streams, CollapseStreamsArgs, all) \
  X(expand_streams, ExpandStreamsArgs, all)     \
  X(gram_rows, GramRowsArgs, all)               \
  X(mix_sources, MixSourcesArgs, all)           \
  X(mix_heads, MixHeadsArgs, all)               \
  X(predict_streams, PredictStreamsArgs, all)   \
  X(correct_streams, CorrectStreamsArgs, all)   \
  X(match_size, MatchSizeArgs, all)             \
  X(gather_rows, GatherRowsArgs, all)           \
  X(pool, PoolArgs, all)                        \
  X(put_sampled, PutSampledArgs, all)           \
  X(scale_logits, ScaleLogitsArgs, all)         \
  X(sample, SampleArgs, all)

// Forms of operators that a network may need and a backend may not support: X(name, text for errors,
// backends).
#define OCTAVO_FORMS(X)                            \
  X(fixed_keys, "attention with fixed keys", host) \
  X(fp8_activations, "products that round activations to fp8", device)

// Declares a function of a backend, with the operator's name.
#define OCTAVO_DECLARE_OPERATOR(name, Args, backends) void name(Stream& stream, const Args& args);
