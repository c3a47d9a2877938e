// What a network is, as plain data.
//
// A family's file turns config.json into a ModelSpec; everything else is derived from it: the tensors to load
// (parameters.h), the layout of the KV cache (cache_layout.h), the forward pass (decoder.h), memory and cost
// (inspect.h). A family differs from another by numbers, places and activations, never by code.
//
// A layer has two halves: a mixer, where tokens look at each other, and a feed-forward, which each token
// passes on its own. The kinds of both are blocks: a struct here, and a file in blocks/ with all that follows
// from it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/ops.h"
#include "model/names.h"

namespace octavo {

// Norms by kind: weight always, bias on request. weight_offset is added to the stored weight (Gemma stores w
// and multiplies by 1 + w). Where none is stored each weight is 1.
struct NormSpec {
  NormKind kind = NormKind::none;
  float eps = 0;
  bool bias = false;
  float weight_offset = 0;
  bool stored = true;
};

enum class RopeScalingKind : std::uint8_t {
  none,
  linear,
  dynamic,
  llama3,
  yarn,
  longrope,
  proportional,
  ntk
};

// How a rotary embedding is stretched beyond the length it was trained on; see rope.h for the formulas.
// Fields that a kind does not use keep their defaults.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;
  int original_positions = 0;  // the length of training
  // llama3
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  // yarn
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  // proportional: of the pairs, those that turn; the first ones
  double share = 1;
  // longrope: one divisor a pair of elements
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // yarn and longrope: what cos and sin are multiplied by
  double attention_factor = 1;
};

// Which frequencies the pairs of a rotary embedding of several axes have.
enum class AxisFrequencies : std::uint8_t {
  in_line,      // pair after pair, whatever their axes
  anew,         // those of each axis as if there were no others
  alternating,  // the axes, with equally many pairs, take turns: the first has the first frequency
};

struct RopeSpec {
  int rotary_dim = 0;  // elements of a head that turn; even
  double theta = 10000;
  bool interleaved = false;
  RopeScaling scaling = {};
  // Not empty: tokens have a position on each of several axes (Wang et al., "Qwen2-VL", 2024), and pair i
  // turns by the one on axes[i].
  std::vector<std::int32_t> axes = {};
  AxisFrequencies axis_frequencies = AxisFrequencies::in_line;
};

// Queries of the token at `position` count 1 + beta * ln(1 + floor((position + shift) / length)) times, so
// that attention over long contexts stays sharp (Llama 4, 2025).
struct Temperature {
  double beta = 0;
  int length = 0;
  int shift = 0;
};

// Norm of queries and keys.
enum class QkNorm : std::uint8_t {
  none,
  shared,     // each head on its own, one weight [head_dim] for all
  per_head,   // each head on its own, a weight a head
  whole_row,  // all heads of a token together
};

// Scores grow by a number of each head for how far a key is from its query (AttentionArgs::distance_bias): of all
// layers one table [buckets, heads]. Where tokens see both sides, half of the buckets are for each. The first half of
// a side's are for one distance each, the others for ranges that grow up to `furthest`.
struct DistanceBias {
  int buckets = 0;  // 0: there is none
  int furthest = 0;
};

struct Attention {
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int input_dim = 0;  // of what queries, keys and values are made of; 0: the network's
  bool qkv_bias = false;
  bool k_bias = true;  // with qkv_bias: keys have one, too
  bool out_bias = false;
  QkNorm qk_norm = QkNorm::none;
  NormSpec qk_norm_spec = {};
  bool qk_norm_turned = false;  // it comes behind the rotation, else before it
  float scale = 1;              // of the scores
  float soft_cap = 0;           // of the scores; 0: none
  bool sinks = false;           // each head has a learned score that takes its share and has no value
  bool causal = true;           // a token sees none that come after it
  // A query sees that many last tokens, itself included, and where it is not causal as many on the other
  // side; 0: all.
  int window = 0;
  int chunk = 0;       // AttentionArgs::chunk
  bool local = false;  // of encoders of images: a patch sees those of its ImageInput::window alone
  bool whole_images = true;  // the tokens of an image see all of it, with ModelSpec::whole_images
  int rope = -1;       // index into ModelSpec::ropes; -1: none
  // Matrices and norms are stored so that each half of a head turns by itself, as a head of half the size.
  bool rope_by_halves = false;
  std::vector<float> slopes = {};  // AttentionArgs::slopes; empty: none
  DistanceBias distance_bias = {};
  bool temperature = false;        // ModelSpec::temperature counts
  // What each head puts out is multiplied by the sigmoid of a gate, whose rows follow each head's queries, or are
  // the fourth matrix of Names::qkv.
  bool output_gate = false;
  bool head_gate = false;        // what each head puts out is multiplied by the sigmoid of a number of its own
  float clip = 0;                // queries, keys and values are cut beyond it, on both sides; 0: they are not
  int value_dim = 0;             // of a head's values, where they are narrower than its keys, and zeros follow; 0: as wide
  NormSpec v_norm = {};          // of each head's values; its weight is not stored
  bool keys_are_values = false;  // one projection makes both, before their norms
  int source = -1;               // the layer whose keys and values it reads; -1: it has its own
  // Of the latent that queries are made of (multi-matrix factorization attention: Step-3, 2025), which has
  // q_latent_norm; 0: they are made of the input.
  int q_rank = 0;
  NormSpec q_latent_norm = {};

  int q_dim() const { return q_heads * head_dim; }
  int kv_dim() const { return kv_heads * head_dim; }
  int stored_value_dim() const { return value_dim > 0 ? value_dim : head_dim; }
  int qkv_dim() const { return q_dim() + 2 * kv_dim(); }
};

// Attention to the rows that an encoder has made: queries of the layer's input, keys and values of those
// rows. Every head has keys of its own. See blocks/cross_attention.cc.
struct CrossAttention {
  int heads = 0;
  int head_dim = 0;
  float scale = 1;  // of the scores
  bool bias = true;  // of the products; of keys, `k_bias`
  bool k_bias = false;

  int rows() const { return heads * head_dim; }
};

// Which tokens a query sees (ChooseTokensArgs): keys and weights of its heads are made of the input, queries
// of the queries' latent. The first numbers of queries and keys turn.
struct Indexer {
  int heads = 0;       // 0: there are none, queries see what those of the last layer with some have chosen
  int head_dim = 0;
  int chosen = 0;      // tokens that a query sees at most
  int rope = -1;       // index into ModelSpec::ropes
  NormSpec norm = {};  // of keys
};

// Multi-head latent attention: see blocks/latent_attention.cc.
struct LatentAttention {
  int heads = 0;
  int q_rank = 0;            // of the latent that queries are made of; 0: they are made of the input
  int kv_rank = 0;           // of the latent that keys and values are made of
  int nope_dim = 0;          // of a head's query and key, what does not turn
  int rope_dim = 0;          // and what does; all heads have one such key
  int value_dim = 0;         // of a head
  NormSpec norm = {};        // of the latents
  bool bias = false;         // of the projections to the latents, and of the last
  float scale = 1;           // of the scores
  int rope = -1;             // index into ModelSpec::ropes
  float latent_scale = 1;    // what the latent of keys and values is multiplied by, behind its norm
  bool head_gate = false;    // as Attention's
  bool temperature = false;  // ModelSpec::temperature counts
  std::optional<Indexer> indexer = {};  // nothing: a query sees all tokens; with q_rank

  int q_dim() const { return nope_dim + rope_dim; }
  int key_dim() const { return kv_rank + rope_dim; }  // as it is cached, beside an indexer's
};

// Attention over the last tokens and over entries that stand for several tokens each (CompressArgs; DeepSeek-V4,
// 2026). A token has one key, which is its value, too. See blocks/compressed_attention.cc.
struct CompressedAttention {
  int heads = 0;
  int head_dim = 0;
  int q_rank = 0;        // of the latent that queries are made of
  int out_groups = 1;    // of heads, whose products with matrices of their own the last matrix mixes
  int out_rank = 0;      // numbers of each of these products
  int window = 0;        // last tokens that a query sees, itself included
  NormSpec norm = {};    // of the latent, of each head of queries (stored there: no weight), of keys and of entries
  float scale = 1;       // of the scores
  int rope = -1;         // index into ModelSpec::ropes: the ends of heads turn
  int rate = 0;          // tokens of an entry; 0: there are none
  bool overlaps = false; // an entry is made of the tokens before its own, too
  std::optional<Indexer> indexer = {};  // nothing: a query sees all entries; with `overlaps`

  int sets() const { return overlaps ? 2 : 1; }
  int index_dim() const { return indexer ? indexer->head_dim : 0; }
};

// A gated delta net (GatedDeltaArgs) behind a short convolution. A sequence has a state of fixed size in
// place of its past.
struct DeltaNet {
  int key_heads = 0;
  int value_heads = 0;  // a multiple of key_heads
  bool tiled = false;   // GatedDeltaArgs::tiled
  int key_dim = 0;      // of a head
  int value_dim = 0;
  int conv_width = 0;
  float beta_scale = 1;  // GatedDeltaArgs::beta_scale
  NormSpec norm = {};    // of what each value head puts out, before its gate

  std::int64_t values() const { return std::int64_t{value_heads} * value_dim; }
  // Of the convolution: queries, keys and values.
  std::int64_t channels() const { return 2 * std::int64_t{key_heads} * key_dim + values(); }
};

// Kimi delta attention (Kimi Team, "Kimi Linear", 2025): a gated delta net of which each row of a state
// forgets at a rate of its own. Rates and output gates are products of two matrices with `head_dim` numbers
// between them.
struct KimiDelta {
  int heads = 0;
  int head_dim = 0;  // of queries, keys and values
  int conv_width = 0;
  NormSpec norm = {};  // of what each head puts out, before its gate

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }
};

// Lightning attention (Qin et al., "Lightning Attention-2", 2024): attention without softmax, whose keys and
// values count less by a fixed rate of each head with every token that comes after. A state is in place of
// the past.
struct LightningAttention {
  int heads = 0;
  int head_dim = 0;
  std::vector<float> rates;  // of each head
  NormSpec norm = {};        // of what all heads put out, or those of each group, before its gate
  int norm_groups = 1;
  bool silu = true;          // queries, keys and values pass it
  NormSpec qk_norm = {};     // of each head's queries and keys
  float scale = 1;           // of queries; with qk_norm
  int rope = -1;             // index into ModelSpec::ropes; -1: none

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }
};

// A second path beside attention (Gemma 3n, 2025): x + norm(W_right W_left x). See blocks/laurel.cc.
struct Laurel {
  int rank = 0;
  NormSpec norm = {};
};

// A short convolution between two gates (Liquid AI, LFM2, 2025): of its input are made B, C and x, each as
// wide as the network; out = C * conv(B * x).
struct ShortConv {
  int width = 0;
  bool bias = false;  // of the projections and of the convolution
};

// A Mamba2 mixer (ScanArgs): of its input are made a gate, x, B, C and dt; the convolution is over x, B, C.
struct Mamba2 {
  int heads = 0;
  int head_dim = 0;
  int groups = 0;     // of heads that share B and C
  int state_dim = 0;  // of each column of a head
  int conv_width = 0;
  bool conv_bias = false;
  bool bias = false;  // of the projections
  float least_step = 0;
  float most_step = std::numeric_limits<float>::infinity();
  NormSpec norm = {};      // of what the heads of a group put out; kind none: only the gate
  bool gate_first = true;  // the norm comes behind the gate
  // What gate, x, B, C and dt are multiplied by.
  std::array<float, 5> multipliers = {1, 1, 1, 1, 1};

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }
  // Of the convolution.
  std::int64_t channels() const { return inner() + 2 * std::int64_t{groups} * state_dim; }
};

// A Mamba mixer (ChannelScanArgs): of its input are made x and a gate; of x, behind the convolution, dt of
// low rank, b and c.
struct Mamba {
  int inner = 0;
  int state_dim = 0;
  int step_rank = 0;
  int conv_width = 0;
  bool conv_bias = false;
  bool bias = false;   // of the first and the last projection
  NormSpec norm = {};  // of dt, b and c
};

// Time mixing of RWKV-7 (Peng et al., 2025): WkvArgs, each part of whose input is a mixture of a token and
// the one before it. Decays, rates, gates and the share of the first layer's values are made by two matrices
// each, with an activation between them. See blocks/time_mix.cc.
struct TimeMix {
  int heads = 0;
  int head_dim = 0;
  int decay_rank = 0;  // these four: numbers between the two matrices
  int rate_rank = 0;
  int value_rank = 0;
  int gate_rank = 0;
  bool first = false;  // the first layer: its values are what the others take a share of
  float unit_eps = 0;  // WkvArgs::eps
  NormSpec norm = {};  // WkvArgs::norm

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }
};

struct Mlp {
  int hidden = 0;
  Activation activation = Activation::silu;
  bool gated = true;
  bool up_bias = false;  // of gate and up
  bool down_bias = false;
  float alpha = 1;  // of swigluoai
  // Of swigluoai. Of others, above 0: gates are cut above it, and what they are multiplied with on both sides.
  float limit = 0;
  float gate_limit = 0;  // of gates alone, in place of limit; 0: it is the same
  // Of what goes into a gate's activation; not of swigluoai. Where it is not 1, what has no gate is its own:
  // quick_gelu is x * sigmoid(1.702 x).
  float gate_scale = 1;
  std::optional<float> tail = {};  // KeepTailArgs::deviations: of gates, no more goes into the activation
  std::optional<std::array<float, 2>> slopes = {};  // of xielu; nothing: the checkpoint has Names::slopes

  std::int64_t up_dim() const { return gated ? 2 * std::int64_t{hidden} : hidden; }
};

// Channel mixing of RWKV-7: an MLP that reads a mixture of a token and the one before it.
struct ChannelMix {
  Mlp mlp;
};

// MLPs of which a router chooses a few for each token (Shazeer et al., 2017).
struct Experts {
  int count = 0;
  RouterRule router;
  bool router_bias = false;
  bool choice_bias = false;        // RouteArgs::bias
  int identities = 0;              // more of them, behind the others, that put out what they read
  int vocab = 0;  // not 0: which ones a token goes to says a table of so many ids, the router how much they count
  bool scales = false;             // what each puts out is multiplied by a number of its own
  NormSpec router_norm = {};       // of the residual, which the router reads; none: it reads what experts do
  Mlp expert;                      // each of them
  std::optional<Mlp> shared = {};  // one more, which every token passes
  bool shared_gate = false;        // and which counts as much as a gate of its own says
  bool weigh_input = false;        // the one chosen expert's weight counts before it, not behind it
  bool sum_bias = false;           // what they put out together has a bias; not with `shared`
  // Not 0: experts read a product of the input with so many numbers, and what they put out together is lifted by
  // a matrix to the network's width (Nemotron 3, 2026).
  int latent = 0;
};

// Experts beside a dense MLP (Gemma 4, 2026), each with norms of its own. See blocks/mlp_and_experts.cc.
struct MlpAndExperts {
  Mlp mlp;
  Experts experts;
  NormSpec norm = {};  // of what experts read, and of what both put out
};

// A vector for each token and layer, made of the token's id and of its embedding ("per-layer embeddings",
// Gemma 3n, 2025). Behind the halves of a layer it is multiplied by a gate of the residual, and what is made
// of that is added. See blocks/layer_input.cc.
struct LayerInputs {
  int size = 0;                                   // of a layer's vector
  int vocab = 0;                                  // ids with vectors; others have the first one's
  NormSpec norm = {};                             // of the part that is made of the embedding
  Activation activation = Activation::gelu_tanh;  // of the gate
};

// Several residuals side by side, of which layers work on the first (PredictStreamsArgs). The others begin as
// products of the embedding, are as large as it, and are added to the first at the end, likewise.
struct Streams {
  int count = 0;
  NormSpec norm = {};        // of what is read to mix them
  bool scales_input = true;  // of LayerInputs: it sees the first one times a vector
};

// Several residuals side by side, each half of a layer reading one mixture of them and being added to each
// (CollapseStreamsArgs). All begin as the embedding.
struct HyperConnections {
  int count = 0;
  int iterations = 0;
  float eps = 0;
  float norm_eps = 0;

  int rows() const { return count * (2 + count); }  // of a half's matrix
};

// Attention and an MLP, one behind the other, that several layers have in common (Zamba2, 2024). They read
// the residual and the token's embedding side by side. Each use has products of low rank of its own beside
// their matrices, and one more matrix behind them. What comes out is added to what the layer's mixer reads,
// not to the residual. See blocks/shared_transformer.cc.
struct SharedTransformer {
  int heads = 0;
  int head_dim = 0;
  float scale = 1;  // of the scores
  int rope = -1;    // index into ModelSpec::ropes; -1: none
  Mlp mlp;
  int mlp_rank = 0;        // of the products beside the MLP's first matrix
  int attention_rank = 0;  // of those beside queries, keys and values; 0: there are none
  NormSpec norm = {};      // of what attention and the MLP read
  int owner = 0;           // the first layer that has it, whose tensors it is made of
  int use = 0;             // the number of this use, among those of all such blocks

  std::int64_t rows() const { return std::int64_t{heads} * head_dim; }
};

// monostate: no such half
using Mixer = std::variant<std::monostate, Attention, LatentAttention, CompressedAttention, DeltaNet, KimiDelta,
                           LightningAttention, ShortConv, Mamba2, Mamba, TimeMix, Laurel>;
using FeedForward = std::variant<std::monostate, Mlp, ChannelMix, Experts, MlpAndExperts>;

// How the two halves of a layer, F in {mixer, feed_forward}, act on the residual x:
//   serial           x += post(F(pre(x))), first the mixer, then the feed-forward
//   parallel         x += mixer(pre_1(x)) + feed_forward(pre_2(x))
//   parallel_shared  the same, with one pre-norm for both
//   post_norm        x = post(x + F(x)), first the mixer, then the feed-forward, as BERT has it
//   from_norm        x = pre(x), x += F(x), likewise, as MiniMax has it
enum class Residual : std::uint8_t { serial, parallel, parallel_shared, post_norm, from_norm };

// What the residual becomes before a layer: `share` of what it was before an earlier one, and the rest of itself.
struct Blend {
  int layer = 0;
  float share = 0;
};

struct LayerSpec {
  std::string prefix = {};  // what stands before the names of its tensors, behind its number
  int number = -1;          // that number; -1: its place among the layers
  std::string part = {};    // what '#' in these names stands for
  std::optional<Blend> blend = {};
  std::optional<SharedTransformer> shared = {};  // in front of the mixer, of serial layers
  Mixer mixer = {};
  Mixer second_mixer = {};  // beside the mixer, behind the same norm; where layers are serial
  std::optional<CrossAttention> cross = {};  // between the halves, of serial layers and of those with post_norm
  FeedForward feed_forward = {};
  // Experts that read what the feed-forward does; what they put out is added behind the next layer (LongCat-Flash, 2025).
  std::optional<Experts> shortcut = {};
  Residual residual = Residual::serial;
  NormSpec pre_norm = {};    // kind none: no norm in this place
  bool mixer_normed = true;  // the mixer has pre_norm, too
  // Of the halves' outputs; both places used: "sandwich". A half whose norm has no name has none.
  NormSpec post_norm = {};
  std::optional<float> last_offset = {};  // NormSpec::weight_offset of the feed-forward's, where it is not the mixer's
  float residual_scale = 1;
  // What the halves put out is multiplied by, besides.
  float mixer_scale = 1;
  float second_mixer_scale = 1;
  float feed_forward_scale = 1;
  // What the residual is multiplied by behind the mixers, and behind the layer; `scaled`: there by a number
  // of the checkpoint (Names::layer_scale).
  float mixed_scale = 1;
  float passed_scale = 1;
  bool scaled = false;

  // For families whose layers have these kinds.
  Attention& attention() { return std::get<Attention>(mixer); }
  const Attention& attention() const { return std::get<Attention>(mixer); }
  Mlp& mlp() { return std::get<Mlp>(feed_forward); }
};

// How the scores of labels become what a client sees.
enum class LabelActivation : std::uint8_t { none, sigmoid, softmax, relu };

// A matrix behind the pooling, and what becomes of its product. Names come without a prefix.
struct HeadLayer {
  std::string name;
  int outputs = 0;
  bool bias = true;
  std::optional<Activation> activation = {};
  NormSpec norm = {};  // behind the activation
  std::string norm_name = {};
  // Not empty: a folder beside config.json whose weights are the matrix; `name` begins with it.
  std::string folder = {};
  // Not empty: a file of torch.save beside config.json that has the matrix, as "weight" and "bias".
  std::string file = {};
  // Not empty: of a matrix with a row for each token of the vocabulary, or with `table` of them, these; with
  // `difference` there are two, and the only output is the first one's less the second's.
  std::vector<int> rows = {};
  int table = 0;
  bool difference = false;
};

// What a model that reads texts instead of continuing them makes of one: a vector or, with labels, their
// scores.
struct Head {
  Pool pool = Pool::mean;
  bool each_token = false;  // it makes a vector of each token, not of the text
  bool normalise = false;   // a vector's length becomes 1
  std::vector<HeadLayer> layers = {};
  std::vector<std::string> labels = {};  // of the last layer's outputs; empty: they are a vector
  LabelActivation label_activation = LabelActivation::none;
  // With each_token: tokens of which nothing is to be seen where they begin or end a text; -1: none.
  int left_out_first = -1;
  int left_out_last = -1;
};

// What makes rows of a language model's input of an encoder's: squares of merge x merge neighbours of an
// image, or some rows of a sound, become one row, side by side ("pixel shuffle") or by their mean.
struct Projector {
  bool mean = false;
  bool merged = false;  // a product [dim, dim * joined] comes first; its columns are stored by channel
  NormSpec norm = {};   // of these rows
  // Of a hidden layer between two matrices; nothing: there is but one.
  std::optional<Activation> activation = {};
  int hidden = 0;  // its width
  bool bias = false;
  bool transposed = false;  // stored [inputs, outputs], under their names alone
};

// What an encoder of images (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021) has in place of
// embeddings: a grid of square patches. Those of images of one size have learned positions; of any size,
// rotary ones of two axes, height and width, and maybe learned ones beside them.
struct ImageInput {
  int image_size = 0;  // pixels of a square image's side; 0: images have any size
  int patch_size = 0;
  int merge = 1;
  int frames = 0;  // of videos, that a patch has, all of them an image's; 0: it is for images alone
  float time_steps = 0;  // of the axis of time, that a second of a video has; 0: a patch is one
  bool bias = true;  // of what makes vectors of patches
  bool channels_last = false;  // its columns are stored by row, column, channel, and have no axes
  // There is a learned row before those of the patches, with a position of its own: layers see it, the
  // projector does not.
  bool class_token = false;
  int window = 0;  // tokens of a side of the windows of local layers
  // Of images of any size: the learned positions are a grid of so many a side, which is stretched over an
  // image's patches (position_grid.h); 0: there are none.
  int position_side = 0;
  // Or there are so many for columns, then as many for rows, and a patch has the sum of two; 0: there are
  // none.
  int axis_positions = 0;
  int out_dim = 0;          // of a token
  bool row_breaks = false;  // between the rows of an image's tokens the text has tokens of its own
  // An image is cut into squares of image_size, with the whole of it before them. Their tokens make one grid,
  // and behind each of its rows stands a learned one (MediaPart::Tiles; Liu et al., "LLaVA-NeXT", 2024).
  bool tiled = false;
  // The whole image comes behind the squares and is made of them. Learned rows stand behind each of its rows, too, and
  // another one between both: the projector makes rows of the text of them. Patches that show nothing of the image are
  // not seen by others (MediaPart::Tiles; Phi-4-multimodal: Abouelenin et al., 2025).
  bool whole_last = false;
  Projector projector = {};
  // Behind each of these layers another projector makes rows of the patches. The language model adds the
  // first ones to its residual behind its first layer, and so on (Meng et al., "DeepStack", 2024).
  std::vector<int> deep_layers = {};
  Projector deep_projector = {};
  // A channel's value v, 0 to 255, counts as (v * scale - mean) / std.
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0.5F, 0.5F, 0.5F};
  std::array<float, 3> std = {0.5F, 0.5F, 0.5F};

  bool placed() const { return position_side > 0 || axis_positions > 0; }  // has both kinds of positions
  int unit() const { return patch_size * merge; }  // pixels of a token's side
  int square() const { return merge * merge; }     // patches of a token
  int patch_values() const { return 3 * std::max(1, frames) * patch_size * patch_size; }
  int side() const { return image_size / unit(); }  // tokens of a square image's side
  // What the language model gets for a token: its row, and those of the deep layers.
  std::int64_t row_dim() const { return std::int64_t{out_dim} * (1 + std::ssize(deep_layers)); }
};

// What an encoder of sound (Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision",
// 2022) has in place of embeddings: a log-mel spectrogram of fixed length, behind two convolutions three
// frames wide, the second of which takes every other frame.
struct SoundInput {
  int mels = 0;
  int rows = 0;  // that the encoder makes
  // Of sound in prompts: so many of them become one row of the text, of out_dim. 0: layers of the text look
  // at the encoder's rows.
  int joined = 0;
  bool whole =
      false;  // with joined: it sees windows of full length alone, the silence behind a sound as well
  int out_dim = 0;
  Projector projector = {};

  int frames() const { return 2 * rows; }
  int tokens() const { return rows / joined; }  // of a sound as long as the encoder takes it
};
constexpr int kSoundTaps = 3;  // frames that a convolution sees

// Of an encoder of prompts (Raffel et al., "Exploring the Limits of Transfer Learning", 2020): the language model's
// layers look at its rows, one for each token, and its own text begins with the same tokens whatever the prompt is.
struct SourceInput {
  int rows = 0;            // at most
  std::vector<int> begin;  // tokens
};

// What a network that proposes for another one reads beside the embedding of a token: a row that the other
// has made of the token before it (multi-token prediction: DeepSeek-V3, 2024; EAGLE: Li et al., ICML 2024;
// EAGLE-3: Li et al., 2025).
struct HiddenInput {
  int dim = 0;    // of the other's residual
  int vocab = 0;  // of the tokens that are read
  // The row: the other's residual before each of these layers, side by side; empty: its residual behind the
  // last one, normed. For the second draft token and those behind it, a row of this network's own residual
  // takes its place.
  std::vector<int> layers = {};
  NormSpec token_norm = {};  // of the embedding
  NormSpec hidden_norm = {};
  // A product of both, one behind the other, is the residual. false: a product of the row is, and the first
  // layer's mixer sees embedding and row one behind the other, each with its norm.
  bool joined = true;
  bool hidden_first = false;     // joined: the row comes before the embedding
  bool joint_bias = false;       // of the product
  bool normed_residual = false;  // not joined: the residual has hidden_norm, too
  bool normed_output = false;    // rows of its own are behind its final norm
  // Else the other's matrices are used.
  bool own_embedding = false;
  bool own_output = false;

  std::int64_t row() const { return std::int64_t{dim} * (layers.empty() ? 1 : std::ssize(layers)); }
};

// A network's layer of multi-token prediction: how its tensors are called, without the prefix.
struct Predictor {
  std::vector<std::string> prefixes = {};  // empty: the network's
  std::size_t like = 0;                    // the layer of the network that it is like
  std::string layer;
  std::string token_norm, hidden_norm, joint;
  std::string final_norm = {};  // empty: there is none
  bool hidden_first = false;  // these two: HiddenInput
  bool normed_output = false;
};

// Tensor parallelism: which part of every layer, and of the vocabulary, a process holds.
struct Shard {
  int rank = 0;
  int size = 1;
  bool whole_experts = false;  // expert parallelism: a rank has some experts in place of a part of each
  std::uint16_t redundant_experts =
      0;  // then: places beside those that hold each expert of a layer once (expert_placement.h)

  // Where this rank's part of n items begins, and how many they are: parts differ by one where size does not divide n.
  std::int64_t first(std::int64_t n) const { return n * rank / size; }
  std::int64_t count(std::int64_t n) const { return n * (rank + 1) / size - first(n); }
  // Of n hidden units of an expert, so many stay together: those that share a scale in MXFP4, where there are enough.
  std::int64_t together(std::int64_t n) const { return n % 32 == 0 && n / 32 >= size ? 32 : 1; }
};

// Pipeline parallelism: which layers a process holds. The first stage has the embedding as well, the last
// what is behind the layers.
struct Stage {
  int index = 0;
  int count = 1;
  int first_layer = 0;  // these two where there are several stages: see divide_layers
  int end_layer = 0;

  bool is_first() const { return index == 0; }
  bool is_last() const { return index == count - 1; }
};

struct ModelSpec {
  std::string architecture;
  int dim = 0;
  int vocab = 0;
  int max_positions = 0;  // longest sequence that the model is meant for, scaling included
  float embed_scale = 1;
  bool embed_scale_rounds = false;  // to the format of the weights, before it is used
  int learned_positions = 0;        // rows of a table [rows, dim] that is added to the embeddings; 0: none
  int first_position = 0;           // the row of that table for the first token
  int token_types = 0;              // rows of another, by the part of the text that a token is in; 0: none
  NormSpec embedding_norm = {};     // of the sum
  std::vector<RopeSpec> ropes;
  Temperature temperature = {};  // of the layers that have one
  std::vector<LayerSpec> layers;
  std::optional<LayerInputs> layer_inputs = {};
  std::optional<Streams> streams = {};
  std::optional<HyperConnections> hyper = {};
  NormSpec final_norm;
  bool tied = false;  // the embedding is also the output matrix
  bool logits_bias = false;
  float logits_scale = 1;
  float logits_soft_cap = 0;      // 0: none
  std::optional<Head> head = {};  // nothing: it continues texts
  // With a head: what else it makes, of each token (BGE-M3: Chen et al., "M3-Embedding", 2024).
  std::vector<Head> token_heads = {};
  Names names;
  std::optional<Names> other_names = {};    // some checkpoints use these instead
  std::optional<Predictor> predictor = {};  // in the same checkpoint
  std::optional<HiddenInput> hidden = {};   // it proposes for another network
  Shard shard = {};                         // all numbers above are the whole network's (shard.h)
  Stage stage = {};                         // and all layers
  std::optional<ImageInput> image = {};     // it encodes images, and has no vocabulary
  std::optional<SoundInput> sound = {};     // it encodes sound, likewise
  std::optional<SourceInput> source = {};   // it encodes prompts
  // Of a language model that sees or hears, or that reads its prompts by cross attention: what encodes images, sound
  // or prompts, and the token that stands where they are. Of one with cross attention there is no such token.
  std::shared_ptr<const ModelSpec> tower = {};
  int media_token = -1;
  int video_token = -1;  // the same of frames of videos; -1: it sees none
  // The tokens of an image see all of it, not only those before them, in layers with Attention::whole_images.
  bool whole_images = false;

  // The head, then those of tokens.
  std::size_t heads() const { return head ? 1 + token_heads.size() : 0; }
  const Head& head_at(std::size_t index) const { return index == 0 ? *head : token_heads[index - 1]; }
  bool has_axes() const {
    return std::ranges::any_of(ropes, [](const RopeSpec& rope) { return !rope.axes.empty(); });
  }
  bool encodes_media() const { return image || sound; }
  // Of an encoder of images: tokens of the largest one.
  int image_tokens() const {
    return image->image_size > 0 ? image->side() * image->side() : max_positions / image->square();
  }
  // Of this stage.
  std::size_t first_layer() const {
    return stage.count > 1 ? static_cast<std::size_t>(stage.first_layer) : 0;
  }
  std::size_t end_layer() const {
    return stage.count > 1 ? static_cast<std::size_t>(stage.end_layer) : layers.size();
  }
  // Sound stands beside prompts, not in them.
  bool hears_beside() const { return tower && tower->sound && tower->sound->joined == 0; }
  // Layers look at the rows of an encoder: of sound or of prompts.
  bool has_cross() const { return hears_beside() || (tower && tower->source); }
  // Of an encoder that layers look at: rows of the longest.
  int cross_rows() const { return sound ? sound->rows : source->rows; }
  // Of an encoder whose rows stand in prompts: how many of them are one of the text's, what makes it of them,
  // and how wide it is.
  int joined() const { return image ? image->square() : sound->joined; }
  const Projector& projector() const { return image ? image->projector : sound->projector; }
  int out_dim() const { return image ? image->out_dim : sound->out_dim; }

  // Whether its layers see all of a text at once, so that it cannot continue one.
  bool bidirectional() const {
    for (const LayerSpec& layer : layers)
      if (const auto* attention = std::get_if<Attention>(&layer.mixer); attention && !attention->causal)
        return true;
    return false;
  }
};

}  // namespace octavo
