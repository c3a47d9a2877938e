// The forward pass: one for all families, written over the operators of kernels/ops.h.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "dist/process_group.h"
#include "model/adapter.h"
#include "model/cache_layout.h"
#include "model/model.h"

namespace octavo {

// One cache group's view of a step.
struct GroupBatch {
  const AttentionPlan* plan = nullptr;
  View slots;  // i64 [n]: where each token's keys and values go
};

// The states of a step's sequences; empty where no layer is recurrent.
struct StateBatch {
  View memory;  // f32 [slots, CacheLayout::state_floats]
  View slots;   // i32 [sequences], as in StatePlan
  View starts;  // i32 [sequences + 1]
  View copies = {};  // i32 [n]
};

// Of models with cross attention: what their layers read of encoders' rows.
struct CrossBatch {
  const AttentionPlan* plan = nullptr;
  std::span<const KvLayer> cache;  // one for each layer
};

// Tokens from `token` on stand for these rows of an image: in place of their embeddings and, of images with
// rows of deep layers (ImageInput::deep_layers), to be added to the residual behind the first layers.
struct ImageRows {
  std::int64_t token = 0;
  View x;     // f32 [tokens, ImageInput::row_dim()]
  View rows;  // i32 [tokens]: 0, 1 ..
};

// The tokens of a step, those of one sequence next to each other and ascending.
struct ForwardBatch {
  View ids = {};          // i32 [n]
  View positions;         // i32 [n]
  View axes = {};         // i32 [axes, n]: of ropes with axes; [1, n]: on all of them the same; without it,
                          // on all of them `positions`
  View token_types = {};  // i32 [n]; of models that have them
  std::span<const GroupBatch> groups;  // beside CacheLayout::groups
  StateBatch states = {};
  const StepAdapters* adapters = nullptr;
  std::span<const ImageRows> images = {};
  std::span<const WholeSpan> wholes = {};
  CrossBatch cross = {};
  View features = {};  // of encoders of sound, in place of ids: act [n, dim], what the convolutions have made
  View patches = {};   // of encoders of images, in place of ids: act [n, ImageInput::patch_values()]
  // Of those with ImageInput::position_side: f32 [n, dim], what is added to the patches, by `positions`.
  View placed = {};
  // Of those with ImageInput::deep_layers: f32 [tokens, out_dim of each of them side by side], to be written.
  View deep = {};
};

// Rows [first, first + count) of a step.
struct StepRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct DecoderLimits {
  int max_tokens = 0;        // of a step
  int max_logit_rows = 0;    // of one call of logits()
  int max_adapter_rank = 0;  // 0: no adapters
  std::vector<int> kept_layers =
      {};  // before each of these layers the residual is kept (HiddenInput::layers)
};

// Numbers that a model's head makes of a text or of a token.
int pooled_size(const ModelSpec& spec, std::size_t head = 0);

// Bytes of a decoder's workspaces.
std::int64_t workspace_bytes(const ModelSpec& spec, DType activation, const DecoderLimits& limits);

// Holds the workspaces, all allocated here; a step allocates nothing. Refers to model, layout and backend,
// which must live longer.
class Decoder {
 public:
  // group: of the ranks that hold the other parts of the model; it lives longer, and tells of failures. Ranks
  // run the same steps.
  static Result<Decoder> make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits, ProcessGroup* group = nullptr);

  // Runs the layers of this stage; `cache` is beside CacheLayout::layers. A stage that is not the first begins with
  // what handed_on() holds. Leaves the final residual for logits(), on the device: when what it enqueues was
  // recorded, a replay does the same.
  void forward(const ForwardBatch& batch, std::span<const KvLayer> cache) {
    begin(batch);
    run_layers(batch, cache, 0, model_.network.layers.size());
  }
  // The same in parts: what comes before the layers, then layers [first, end), from 0 to the last. What the
  // batch refers to stays where it is until then.
  void begin(const ForwardBatch& batch);
  void run_layers(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t first,
                  std::size_t end);
  // The same of a layer of an encoder of images for some of the rows at a time, in order: those of whole
  // squares of patches. Plans are of these rows' sequences alone. Where rows see those behind them,
  // store_rows() of all comes first.
  void store_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                  StepRows part);
  void run_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer, StepRows part);

  // Of a network that proposes for another (ModelSpec::hidden), before each forward(): beside its token i
  // comes row rows[i] of what the last forward() of `from` has made, which is the other's decoder or this
  // one. rows: i32 [n]
  void read_hidden(const Decoder& from, const View& rows);

  // f32 [tokens, dim]: of a step of so many tokens.
  View residual(std::int64_t tokens) const { return residual_.rows(tokens); }
  // What stages hand on: the residual or, f32 [tokens, streams * dim], all that there are.
  View handed_on(std::int64_t tokens) const { return (model_.spec.hyper ? streams_ : residual_).rows(tokens); }

  // Logits of these rows of the last forward(): rows i32 [r], out f32 [r, vocab], of which ranks other than 0 fill
  // their part alone. adapters: of rows by their places here; null: none changes the output matrix.
  void logits(const View& rows, const View& out, const StepAdapters* adapters = nullptr);

  // What a head makes of tokens [starts[s], starts[s + 1]) of the last forward(), of whole sequences or of
  // single tokens: starts i32 [s + 1], out f32 [s, pooled_size]; s as limits.max_logit_rows says. Vectors are
  // not normalised yet. Once before: the norm behind the layers.
  void norm_rows();
  void pool(const View& starts, std::size_t head, const View& out);

  // The rows of the last forward() behind the final norm: act [n, dim], good until the next.
  View rows();

  // What an encoder makes for the text of the rows of the last forward(), ModelSpec::joined() of them side by
  // side, as the squares of merge x merge patches come: of squares from `first` on, out f32 [squares,
  // out_dim]. With Projector::mean, starts: i32 [squares + 1], where each square's rows begin, from 0 on.
  void project(std::int64_t first, const View& out, const View& starts);
  // The same of rows that it would take: act [n, dim * joined() or with Projector::mean dim], n at most a step's; out
  // f32 [n, out_dim].
  void project_rows(const View& x, const View& out);

 private:
  // What one half of a layer has put out and the residual has not yet taken in.
  struct Pending {
    View delta;
    Norm norm;
    float scale = 1;
    bool replaces = false;  // norm is of the residual with the delta, not of the delta
    View residual_scale = {};
  };
  // A buffer of rows.
  struct Workspace {
    Buffer buffer;
    View all;
    View rows(std::int64_t n) const { return rows(StepRows{0, n}); }
    View rows(StepRows range) const { return all ? all.rows(range.first, range.count) : View{}; }
  };

  Decoder(const Model& model, const CacheLayout& layout, Backend& backend, ProcessGroup* group)
      : model_(model), layout_(layout), backend_(backend), group_(group) {}

  Result<> allocate(const DecoderLimits& limits);
  Result<> allocate(Workspace& workspace, DType type, std::initializer_list<std::int64_t> shape);
  void compute_angles(const ForwardBatch& batch);
  void embed(const ForwardBatch& batch);
  void join_hidden();
  void keep_residual(std::size_t layer);
  void blend_residual(std::size_t layer);
  void make_layer_inputs(const ForwardBatch& batch);
  View stream(int number) const;
  void make_streams();
  void route_streams(const Layer& layer);
  void predict_streams(const Layer& layer);
  void correct_streams(const Layer& layer, const StepContext& step);
  void join_streams();
  View hyper_streams() const;
  void copy_streams();
  void collapse_streams(const StreamWeights& weights, bool mixes);
  void expand_streams(const View& delta);
  void run_shared(const Layer& layer, const StepContext& step, const View& x);
  void add_deep_rows(std::size_t layer, std::span<const ImageRows> images);
  std::int64_t class_rows() const { return model_.network.class_token.weight ? 1 : 0; }
  void embed_patches(const ForwardBatch& batch);
  void embed_positions(const ForwardBatch& batch, const View& added);
  View in_squares(const View& rows, std::int64_t count) const;
  View joined(Scratch& scratch, std::int64_t count, const View& starts);
  View run_head_layer(const HeadLayer& spec, const HeadParameter& layer, Scratch& scratch, View x,
                      const View& out);
  void run_projector(const Projector& spec, const ProjectorParameter& projector, Scratch& scratch, View x,
                     const View& out);
  void project_deep(std::size_t layer, const View& deep);
  StepContext context(const ForwardBatch& batch);
  void enter(std::size_t layer, const ForwardBatch& batch, std::span<const KvLayer> cache,
             StepContext& step) const;
  template <typename Function>
  void on_part(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer, StepRows part,
               const Function& function);
  void take_ropes();
  void run_layer(const LayerSpec& spec, const Layer& layer, const StepContext& step);
  void run(const Block& half, const StepContext& step, const View& x, const View& delta);
  void sum_over_ranks(const View& rows);
  void add(const Pending& pending, const Norm& norm, const View& out);

  const Model& model_;
  const CacheLayout& layout_;
  Backend& backend_;
  ProcessGroup* group_;  // null: this is the only rank
  StepRows rows_;        // of the step: all, or those that run_rows() is about
  Pending pending_;

  // Of each rope, f32 [tokens, rotary_dim / 2], and of those the step's.
  struct Angles {
    Workspace cos, sin;
  };
  std::vector<Angles> angles_;
  std::vector<Rope> ropes_;

  Workspace residual_;                 // f32 [tokens, dim]
  Workspace x_, delta_;                // [tokens, dim]; sums over ranks are f32
  Workspace second_x_, second_delta_;  // the same, for the feed-forward of parallel layers
  Workspace shortcut_;                 // as delta_: of LayerSpec::shortcut, until the next layer's end
  std::map<int, Workspace> earlier_;   // of Blend: the residual before these layers, f32 [tokens, dim]
  // Of all layers' inputs, [tokens, layers * size]: what is made of ids (f32), of embeddings, and both.
  Workspace input_sum_, input_delta_, inputs_;
  // Of Streams: all of them [tokens, streams * dim], of which the residual is the first; what that was before
  // a layer; and by what they are mixed.
  Workspace streams_, before_, routed_;
  // Of HyperConnections, which have streams_, too: how the half that runs is added to each, and how they mix.
  Workspace posts_, mixes_;
  Workspace scratch_;  // of the block that runs
  Workspace adapter_scratch_;
  Workspace logit_residual_, logit_x_;  // [logit rows, dim]
  Workspace zeros_;                     // f32, of run_head_layer()
  Workspace own_ids_;                   // of this rank's part of the vocabulary
  std::vector<std::size_t> logit_bytes_;  // [ranks + 1]: where the ranks' parts of a row of logits begin
  std::vector<int> kept_layers_;
  std::vector<Workspace> kept_;  // f32 [tokens, dim], beside them
  // Of HiddenInput.
  Workspace hidden_;     // f32 [tokens, row]
  Workspace hidden_x_;   // the same in the format of activations, to be multiplied
  Workspace joint_;      // [tokens, both]
  Workspace every_row_;  // i32 [tokens]: 0, 1 ..
  // Of SharedTransformer: residual and embedding side by side, f32 [tokens, 2 * dim], and both normed.
  Workspace pair_, pair_x_;
  bool hidden_is_own_ = false;
  Workspace first_values_;  // of TimeMix, [tokens, TimeMix::inner()]
  Workspace chosen_;        // of LatentAttention, i32 [tokens, Indexer::chosen]
};

// What the attention plan of a group must have room for.
AttentionLimits attention_limits(const Model& model, const LayerGroup& group, int max_tokens,
                                 int max_sequences);

}  // namespace octavo
