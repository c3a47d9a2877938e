// What families with recurrent layers have in common.
#pragma once

#include <span>

#include "model/families/common.h"

namespace octavo {

// What a family calls the fields of Mamba2.
struct Mamba2Fields {
  std::string_view heads = "mamba_n_heads";
  std::string_view head_dim = "mamba_d_head";  // absent or "auto": what the width over the heads is
  std::string_view groups = "mamba_n_groups";
  std::string_view state_dim = "mamba_d_state";
  std::string_view conv_width = "mamba_d_conv";
  std::string_view conv_bias = "mamba_conv_bias";
  std::string_view bias = "mamba_proj_bias";
};

// A Mamba2 mixer whose heads put out `inner` numbers together; nullopt: as many as heads and their size say.
// `norm` is of what they put out.
Result<Mamba2> read_mamba2(const Config& config, const Mamba2Fields& fields,
                           std::optional<std::int64_t> inner, const NormSpec& norm);

// What the heads put out together, as a multiple of the width, mamba_expand.
Result<std::int64_t> read_mamba_inner(const Config& config, int dim);

// A gated delta net, of the fields that begin with linear_. Numbers of `usual` that are not 0 stand for those that
// are not there.
Result<DeltaNet> read_delta_net(const Config& config, float eps, const DeltaNet& usual = {});
// Gives those layers a gated delta net that config.layer_types calls "linear_attention", or, when there is no
// such list, all but every full_attention_interval-th.
Result<> set_delta_nets(ModelSpec& spec, const Config& config, const DeltaNet& net);

// What each layer is, as the list `field` of config.json says: one of `kinds`, in transformers' words
// ("linear_attention", "full_attention" ..); "mamba" and "attention" are the older ones. Empty: there is no
// such list. There must be one for each of `layers`; nullopt: the list says how many there are.
Result<std::vector<std::string>> read_layer_kinds(const Config& config, std::string_view field,
                                                  std::span<const std::string_view> kinds,
                                                  std::optional<std::size_t> layers);

// A network of `mixer` alone, without attention and feed-forward, as the first Mambas are. `mixer` gets the
// width and the spec's norm.
Result<ModelSpec> describe_attention_free(
    const Config& config, const std::function<Result<Mixer>(int dim, const NormSpec&)>& mixer);

}  // namespace octavo
