// Reads the mixers of recurrent layers from config.json.
#pragma once

#include <span>

#include "model/families/common.h"

namespace octavo {

// Names of the Mamba2 fields in a family's config.json.
struct Mamba2Fields {
  std::string_view heads = "mamba_n_heads";
  std::string_view head_dim = "mamba_d_head";  // if missing or "auto": width divided by the number of heads
  std::string_view groups = "mamba_n_groups";
  std::string_view state_dim = "mamba_d_state";
  std::string_view conv_width = "mamba_d_conv";
  std::string_view conv_bias = "mamba_conv_bias";
  std::string_view bias = "mamba_proj_bias";
};

// Reads a Mamba2 mixer. `inner` is the total width of the heads; nullopt means their number times their size.
// `norm` is the norm of the heads' output.
Result<Mamba2> read_mamba2(const Config& config, const Mamba2Fields& fields,
                           std::optional<std::int64_t> inner, const NormSpec& norm);

// Returns mamba_expand times the network's width: the total width of the heads.
Result<std::int64_t> read_mamba_inner(const Config& config, int dim);

// Reads a gated delta net from the fields linear_*. Numbers in `usual` that are not 0 are the defaults of
// missing fields.
Result<DeltaNet> read_delta_net(const Config& config, float eps, const DeltaNet& usual = {});
// Sets a gated delta net in the layers that layer_types calls "linear_attention" or, without layer_types, in
// all layers except every full_attention_interval-th.
Result<> set_delta_nets(ModelSpec& spec, const Config& config, const DeltaNet& net);

// Returns the type of each layer from the list `field`. The result is empty if the list is missing. `kinds`
// are the allowed types, with transformers' names ("linear_attention", "full_attention" ..) or the older ones
// ("mamba", "attention"). The list must have `layers` entries; if `layers` is nullopt, the list defines the
// number of layers.
Result<std::vector<std::string>> read_layer_kinds(const Config& config, std::string_view field,
                                                  std::span<const std::string_view> kinds,
                                                  std::optional<std::size_t> layers);

// Describes a network whose layers have only a mixer, like the first Mamba models. `mixer` receives the
// network's width and norm.
Result<ModelSpec> describe_attention_free(
    const Config& config, const std::function<Result<Mixer>(int dim, const NormSpec&)>& mixer);

}  // namespace octavo
