// Functions that families with recurrent layers share.
#pragma once

#include <span>

#include "model/families/common.h"

namespace octavo {

// A family's names of the fields of Mamba2.
struct Mamba2Fields {
  std::string_view heads = "mamba_n_heads";
  std::string_view head_dim = "mamba_d_head";  // absent or "auto": the width divided by the heads
  std::string_view groups = "mamba_n_groups";
  std::string_view state_dim = "mamba_d_state";
  std::string_view conv_width = "mamba_d_conv";
  std::string_view conv_bias = "mamba_conv_bias";
  std::string_view bias = "mamba_proj_bias";
};

// A Mamba2 mixer with heads of total width `inner`, by default the number of heads times their size. `norm`
// is the norm of the heads' output.
Result<Mamba2> read_mamba2(const Config& config, const Mamba2Fields& fields,
                           std::optional<std::int64_t> inner, const NormSpec& norm);

// Total width of the heads, as a multiple of the network's width: mamba_expand.
Result<std::int64_t> read_mamba_inner(const Config& config, int dim);

// A gated delta net, from the fields that begin with linear_. Numbers of `usual` that are not 0 replace
// missing fields.
Result<DeltaNet> read_delta_net(const Config& config, float eps, const DeltaNet& usual = {});
// Gives those layers a gated delta net that config.layer_types calls "linear_attention", or, when there is no
// such list, all except every full_attention_interval-th.
Result<> set_delta_nets(ModelSpec& spec, const Config& config, const DeltaNet& net);

// Kind of each layer, from the list `field` of config.json: one of `kinds`, in transformers' words
// ("linear_attention", "full_attention" ..). "mamba" and "attention" are the older words. Empty:
// config.json has no such list. The list must have an entry for each of `layers`; nullopt: the list defines
// the number of layers.
Result<std::vector<std::string>> read_layer_kinds(const Config& config, std::string_view field,
                                                  std::span<const std::string_view> kinds,
                                                  std::optional<std::size_t> layers);

// A network of `mixer` alone, without attention and feed-forward, as the first Mambas are. `mixer` gets the
// width and the spec's norm.
Result<ModelSpec> describe_attention_free(
    const Config& config, const std::function<Result<Mixer>(int dim, const NormSpec&)>& mixer);

}  // namespace octavo
