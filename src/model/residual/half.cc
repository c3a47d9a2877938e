#include "model/residual/half.h"

#include "dist/process_group.h"

namespace octavo {
namespace {

Step with_own_state(const Step& step, const Block& block) {
  Step own = step;
  own.memory.states = step.memory.states.columns(block.first_state(), block.state_floats());
  return own;
}

}  // namespace

void reserve_half(const Arena& arena, std::int64_t dim, int number) {
  arena.rows<HalfInput>(arena.activation, dim, number);
  arena.rows<HalfOutput>(arena.sums, dim, number);
}

void run_on_ranks(const Step& step, const Block& block, const View& x, const View& out) {
  if (block.first_state() > 0)
    block.run(with_own_state(step, block), x, out);
  else
    block.run(step, x, out);
  if (step.ranks != nullptr)
    step.ranks->all_reduce({out.as<float>(), static_cast<std::size_t>(out.elements())});
}

void LayerHalf::list(ParameterList& list) { list.add(norms_.pre, block_, norms_.post); }

void LayerHalf::reserve(Arena arena) const {
  reserve_half(arena, dim_);
  block_->reserve(arena);
}

void LayerHalf::run(const Step& step) const {
  const View x = enter(step), out = step.slot<HalfOutput>();
  run_on_ranks(step, *block_, x, out);
  leave(step, out);
}

void LayerHalf::store_rows(const Step& step) const {
  const View x = step.slot<HalfInput>();
  step.residual.look(norms_.pre.norm(), x);
  block_->store_rows(step, x);
}

View LayerHalf::enter(const Step& step) const {
  const View x = step.slot<HalfInput>();
  step.residual.read(norms_.pre.norm(), x);
  return x;
}

void LayerHalf::leave(const Step& step, const View& out) const {
  step.residual.put({.delta = out, .norm = norms_.post.norm(), .scale = scale_});
}

void PostNormHalf::leave(const Step& step, const View& out) const {
  step.residual.put({.delta = out, .norm = norms().post.norm(), .scale = scale(), .replaces = true});
}

View FromNormHalf::enter(const Step& step) const {
  const View x = step.slot<HalfInput>();
  step.residual.replace(norms().pre.norm(), x);
  return x;
}

void SecondMixer::reserve(Arena arena) const {
  reserve_half(arena, dim_, 1);
  block_->reserve(arena);
}

void SecondMixer::run(const Step& step) const {
  const View out = step.slot<HalfOutput>(1);
  step.residual.take_in();
  run_on_ranks(step, *block_, step.slot<HalfInput>(), out);
  step.residual.put({.delta = out, .scale = scale_});
}

void ParallelHalves::list(ParameterList& list) {
  for (Branch* branch : {&mixer_, &feed_forward_}) {
    list.add(branch->norms.pre);
    branch->block->list(list);
    list.add(branch->norms.post);
  }
}

void ParallelHalves::add_blocks(std::vector<Block*>& all) const {
  all.push_back(mixer_.block.get());
  all.push_back(feed_forward_.block.get());
}

void ParallelHalves::reserve(Arena arena) const {
  for (const int number : {0, 1}) reserve_half(arena, dim_, number);
  mixer_.block->reserve(arena);
  feed_forward_.block->reserve(arena);
}

void ParallelHalves::run(const Step& step) const {
  ResidualSum& residual = step.residual;
  const View x = step.slot<HalfInput>(), second_x = one_norm_ ? x : step.slot<HalfInput>(1);
  const View out = step.slot<HalfOutput>(), second_out = step.slot<HalfOutput>(1);
  residual.read(mixer_.norms.pre.norm(), x);
  if (!one_norm_) residual.look(feed_forward_.norms.pre.norm(), second_x);
  run_on_ranks(step, *mixer_.block, x, out);
  run_on_ranks(step, *feed_forward_.block, second_x, second_out);
  residual.put({.delta = out, .norm = mixer_.norms.post.norm(), .scale = mixer_.scale});
  residual.take_in();
  residual.put({.delta = second_out, .norm = feed_forward_.norms.post.norm(), .scale = feed_forward_.scale});
}

}  // namespace octavo
