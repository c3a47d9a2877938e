// Lists the block types. The header of a type has its spec, its tensor names and its make_block().
#pragma once

#include <tuple>
#include <variant>

#include "model/blocks/attention.h"
#include "model/blocks/compressed_attention.h"
#include "model/blocks/cross_attention.h"
#include "model/blocks/delta_net.h"
#include "model/blocks/experts.h"
#include "model/blocks/kimi_delta.h"
#include "model/blocks/latent_attention.h"
#include "model/blocks/laurel.h"
#include "model/blocks/layer_input.h"
#include "model/blocks/lightning_attention.h"
#include "model/blocks/loop_attention.h"
#include "model/blocks/mamba.h"
#include "model/blocks/mamba2.h"
#include "model/blocks/mlp.h"
#include "model/blocks/mlp_and_experts.h"
#include "model/blocks/shared_spec.h"
#include "model/blocks/short_conv.h"
#include "model/blocks/sparse_attention.h"
#include "model/blocks/time_mix.h"
#include "model/residual/specs.h"

namespace octavo {

// Tensor names of a type. A type without a struct Names uses the common names (names.h), or the names of
// another type.
template <class Kind>
struct NamesOf {
  struct Names {};
};
template <class Kind>
  requires requires { typename Kind::Names; }
struct NamesOf<Kind> {
  using Names = typename Kind::Names;
};

template <class... Kinds>
struct KindList {
  using Variant = std::variant<std::monostate, Kinds...>;  // monostate: this half of the layer is empty
  using Names = std::tuple<typename NamesOf<Kinds>::Names...>;
};

using MixerKinds = KindList<Attention,            //
                            LatentAttention,      //
                            CompressedAttention,  //
                            DeltaNet,             //
                            KimiDelta,            //
                            LightningAttention,   //
                            LoopAttention,        //
                            SparseAttention,      //
                            ShortConv,            //
                            Mamba2,               //
                            Mamba,                //
                            TimeMix,              //
                            Laurel>;
using FeedForwardKinds = KindList<Mlp,         //
                                  ChannelMix,  //
                                  Experts,     //
                                  MlpAndExperts>;
using OtherKinds = KindList<CrossAttention,   //
                            LayerInputs,      //
                            JoinStates,       //
                            SphereStep,       //
                            AttendedSources,  //
                            Streams,          //
                            HyperConnections>;

using Mixer = MixerKinds::Variant;
using FeedForward = FeedForwardKinds::Variant;

class KindNames {
 public:
  template <class Kind>
  typename Kind::Names& of() {
    return std::get<typename Kind::Names>(names_);
  }
  template <class Kind>
  const typename Kind::Names& of() const {
    return std::get<typename Kind::Names>(names_);
  }
  template <class Function>
  void each(Function function) {
    std::apply([&](auto&... names) { (function(names), ...); }, names_);
  }

 private:
  decltype(std::tuple_cat(MixerKinds::Names(), FeedForwardKinds::Names(), OtherKinds::Names())) names_;
};

}  // namespace octavo
