#include "weights/low_rank.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo {
namespace {

constexpr std::string_view kPart = ".parametrizations.", kOriginal = ".original";
constexpr std::size_t kAlignment = 64;

bool is_part(const StoredTensor& tensor) { return tensor.name.contains(kPart); }
bool is_original(const StoredTensor& tensor) { return is_part(tensor) && tensor.name.ends_with(kOriginal); }

// Converts "mixer.Wqkv.parametrizations.weight.original" to "mixer.Wqkv.weight".
std::string plain_name(const StoredTensor& original) {
  std::string name = original.name.substr(0, original.name.size() - kOriginal.size());
  return name.replace(name.rfind(kPart), kPart.size(), ".");
}

// lora_A or lora_B of one change, in f32.
struct Factor {
  std::vector<float> numbers;
  std::int64_t rows, cols;
  float at(std::int64_t row, std::int64_t col) const {
    return numbers[static_cast<std::size_t>(row * cols + col)];
  }
};

// The two factors of a change. The change of a matrix is left * right.
struct Factors {
  Factor left, right;
};

Result<Factor> factor_of(const Checkpoint& checkpoint, const std::string& name, std::int64_t which) {
  const StoredTensor* stack = checkpoint.find(name);
  if (stack == nullptr) return failure(ErrorCode::corrupt, "tensor {} is missing", name);
  if (!stack->plain() || !stack->usable() || stack->shape.size() != 3 || which >= stack->shape[0])
    return failure(ErrorCode::corrupt, "tensor {} has shape [{}], but must have at least {} matrices", name,
                   fmt::join(stack->shape, ", "), which + 1);
  Factor factor{.numbers = {}, .rows = stack->shape[1], .cols = stack->shape[2]};
  const std::int64_t count = factor.rows * factor.cols;
  for (std::int64_t i = 0; i < count; ++i) factor.numbers.push_back(number_at(*stack, which * count + i));
  return factor;
}

Result<Factors> factors_of(const Checkpoint& checkpoint, const StoredTensor& original, std::int64_t which) {
  const std::string before = original.name.substr(0, original.name.size() - kOriginal.size());
  TRY(Factor a, factor_of(checkpoint, before + ".0.lora_A", which));
  TRY(Factor b, factor_of(checkpoint, before + ".0.lora_B", which));
  const auto fit = [&](const Factor& left, const Factor& right) {
    return original.shape.size() == 2 && left.rows == original.shape[0] && left.cols == right.rows &&
           right.cols == original.shape[1];
  };
  if (fit(b, a)) return Factors{std::move(b), std::move(a)};
  if (fit(a, b)) return Factors{std::move(a), std::move(b)};
  return failure(ErrorCode::corrupt,
                 "tensor {} has shape [{}], which does not match its low-rank factors [{}, {}] and [{}, {}]",
                 original.name, fmt::join(original.shape, ", "), b.rows, b.cols, a.rows, a.cols);
}

// Reads a matrix of an adapter.
Result<Factor> factor_of(const StoredTensor& matrix) {
  if (!matrix.plain() || !matrix.usable() || matrix.shape.size() != 2)
    return failure(ErrorCode::corrupt, "tensor {} has shape [{}], but must be a matrix of plain numbers",
                   matrix.name, fmt::join(matrix.shape, ", "));
  Factor factor{.numbers = {}, .rows = matrix.shape[0], .cols = matrix.shape[1]};
  for (std::int64_t i = 0; i < factor.rows * factor.cols; ++i) factor.numbers.push_back(number_at(matrix, i));
  return factor;
}

// Returns the factors that an adapter has for a tensor, or nullopt.
Result<std::optional<Factors>> adapter_factors(const Checkpoint& adapter, const StoredTensor& tensor) {
  constexpr std::string_view kWeight = ".weight", kPrefix = "model.";
  if (!tensor.name.ends_with(kWeight)) return std::nullopt;
  std::string name = tensor.name.substr(0, tensor.name.size() - kWeight.size());
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  const StoredTensor* a = adapter.find("base_model.model." + name + ".lora_A.weight");
  const StoredTensor* b = adapter.find("base_model.model." + name + ".lora_B.weight");
  if (a == nullptr || b == nullptr) return std::nullopt;
  TRY(Factor right, factor_of(*a));
  TRY(Factor left, factor_of(*b));
  if (tensor.shape != std::vector<std::int64_t>{left.rows, right.cols} || left.cols != right.rows)
    return failure(ErrorCode::corrupt, "tensor {} has shape [{}], which does not match the adapter's {} * {}",
                   tensor.name, fmt::join(tensor.shape, ", "), b->name, a->name);
  return Factors{std::move(left), std::move(right)};
}

Result<> put_sum(const StoredTensor& original, const Factors& factors, float scale, std::byte* sums) {
  if (!original.plain() || !original.usable())
    return failure(ErrorCode::corrupt, "tensor {} is {}, and this format does not support low-rank changes",
                   original.name, original.format);
  const auto& [left, right] = factors;
  std::vector<float> change(static_cast<std::size_t>(right.cols));
  for (std::int64_t row = 0; row < left.rows; ++row) {
    std::ranges::fill(change, 0.0F);
    for (std::int64_t k = 0; k < left.cols; ++k)
      for (std::int64_t col = 0; col < right.cols; ++col)
        change[static_cast<std::size_t>(col)] += left.at(row, k) * right.at(k, col);
    for (std::int64_t col = 0; col < right.cols; ++col) {
      const std::int64_t i = row * right.cols + col;
      put_number(sums, *original.dtype, static_cast<std::size_t>(i),
                 number_at(original, i) + scale * change[static_cast<std::size_t>(col)]);
    }
  }
  return {};
}

// Returns a copy of the checkpoint, to which `changes` gives the factors of each tensor, or nullopt. The
// tensors of low-rank changes are left out.
template <class Changes>
Result<Checkpoint> changed(const Checkpoint& checkpoint, float scale, Changes&& changes) {
  std::vector<const StoredTensor*> from;
  std::vector<std::size_t> begins;
  std::size_t bytes = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    if (is_part(tensor) && !is_original(tensor)) continue;
    from.push_back(&tensor);
    begins.push_back(bytes);
    bytes += (tensor.bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  TRY(Buffer memory, allocate_host(bytes));
  auto* data = static_cast<std::byte*>(memory.data());
  std::vector<StoredTensor> tensors;
  for (std::size_t i = 0; i < from.size(); ++i) {
    StoredTensor made = *from[i];
    std::byte* own = data + begins[i];
    TRY(const std::optional<Factors> factors, changes(made));
    if (factors)
      TRY_VOID(put_sum(made, *factors, scale, own));
    else
      std::memcpy(own, made.bytes.data(), made.bytes.size());
    if (is_original(made)) made.name = plain_name(made);
    made.bytes = {own, made.bytes.size()};
    tensors.push_back(std::move(made));
    checkpoint.release(*from[i]);
  }
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  if (const auto twice = std::ranges::adjacent_find(tensors, {}, &StoredTensor::name); twice != tensors.end())
    return failure(ErrorCode::corrupt,
                   "tensor {} and its original both exist: the checkpoint must have only one of them",
                   twice->name);
  return Checkpoint(std::move(tensors), std::move(memory));
}

}  // namespace

bool has_changes(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors(), is_original);
}

Result<Checkpoint> with_change(const Checkpoint& checkpoint, std::int64_t which, float scale) {
  return changed(checkpoint, scale, [&](const StoredTensor& tensor) -> Result<std::optional<Factors>> {
    if (!is_original(tensor)) return std::nullopt;
    TRY(Factors factors, factors_of(checkpoint, tensor, which));
    return std::optional(std::move(factors));
  });
}

Result<Checkpoint> with_adapter(const Checkpoint& checkpoint, const Checkpoint& adapter, float scale) {
  return changed(checkpoint, scale,
                 [&](const StoredTensor& tensor) { return adapter_factors(adapter, tensor); });
}

}  // namespace octavo
