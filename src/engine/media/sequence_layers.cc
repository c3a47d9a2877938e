#include "engine/media/sequence_layers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/media/ascending.h"

namespace octavo {
namespace {

constexpr int kBlockSize = 16;

}  // namespace

Result<std::unique_ptr<SequenceLayers>> SequenceLayers::create(const Model& model, int rows,
                                                               Backend& backend) {
  std::unique_ptr<SequenceLayers> made(new SequenceLayers(model, rows, backend));
  TRY_VOID(made->allocate());
  return made;
}

SequenceLayers::SequenceLayers(const Model& model, int rows, Backend& backend)
    : model_(model),
      rows_(rows),
      backend_(backend),
      layout_(cache_layout(model.spec,
                           {.block_size = kBlockSize, .dtype = model.activation, .one_plane = true})) {}

Result<> SequenceLayers::allocate() {
  const int blocks = (rows_ + kBlockSize - 1) / kBlockSize;
  TRY(Decoder decoder, Decoder::make(model_, layout_, backend_, {.max_tokens = rows_, .max_logit_rows = 1}));
  decoder_ = std::make_unique<Decoder>(std::move(decoder));
  TRY(cache_, KvMemory::allocate(layout_, backend_, blocks, 0));

  Device& device = *backend_.device;
  TRY(positions_, ascending<std::int32_t>(rows_, backend_));
  TRY(slots_, ascending<std::int64_t>(rows_, backend_));

  table_.resize(static_cast<std::size_t>(blocks));
  std::iota(table_.begin(), table_.end(), 0);
  for (const LayerGroup& group : layout_.groups) {
    TRY(auto plan, backend_.ops.make_attention_plan(device, attention_limits(model_, group, rows_, 1)));
    plans_.push_back(std::move(plan));
  }
  return {};
}

void SequenceLayers::begin(std::int64_t rows, ForwardBatch input) {
  CHECK(rows > 0 && rows <= rows_, "{} rows, room for {}", rows, rows_);
  groups_.clear();
  starts_ = {0, static_cast<std::int32_t>(rows)};
  lengths_ = {static_cast<std::int32_t>(rows)};
  for (const auto& plan : plans_) {
    groups_.push_back({plan.get(), slots_.view(DType::i64, {rows})});
    backend_.ops.plan_attention(*backend_.stream,
                                {.query_starts = starts_,
                                 .lengths = lengths_,
                                 .block_tables = table_,
                                 .table_stride = std::ssize(table_),
                                 .recorded = false},
                                *plan);
  }
  batch_ = std::move(input);
  batch_.positions = positions_.view(DType::i32, {rows});
  batch_.groups = groups_;
  decoder_->begin(batch_);
  layers_done_ = 0;
}

bool SequenceLayers::advance(int rows) {
  const std::size_t layers = cache_.layers().size();
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(1, rows / batch_.positions.size(0)));
  const std::size_t end = std::min(layers, layers_done_ + wanted);
  decoder_->run_layers(batch_, cache_.layers(), layers_done_, end);
  layers_done_ = end;
  return end == layers;
}

}  // namespace octavo
