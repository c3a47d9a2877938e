#include "weights/torch_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>

#include "weights/pickle.h"
#include "weights/zip_archive.h"

namespace octavo {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

// Names of a number format: the storage class in the pickle, and the name in safetensors.
struct StorageClass {
  std::string_view storage, name;
  std::uint64_t bytes;
  std::optional<DType> dtype;
};
constexpr std::array kStorageClasses = {StorageClass{"torch.FloatStorage", "F32", 4, DType::f32},
                                        StorageClass{"torch.HalfStorage", "F16", 2, DType::f16},
                                        StorageClass{"torch.BFloat16Storage", "BF16", 2, DType::bf16},
                                        StorageClass{"torch.DoubleStorage", "F64", 8, std::nullopt},
                                        StorageClass{"torch.LongStorage", "I64", 8, DType::i64},
                                        StorageClass{"torch.IntStorage", "I32", 4, DType::i32},
                                        StorageClass{"torch.ShortStorage", "I16", 2, std::nullopt},
                                        StorageClass{"torch.CharStorage", "I8", 1, DType::i8},
                                        StorageClass{"torch.ByteStorage", "U8", 1, DType::u8},
                                        StorageClass{"torch.BoolStorage", "BOOL", 1, std::nullopt}};
constexpr std::size_t kRankMax = 8;

using StorageOf = std::function<std::optional<Bytes>(std::string_view key)>;

// Identifies a storage. The pickle writes it as ('storage', type, key, device, number of elements). In files
// from before PyTorch 1.6, a view follows these items.
struct Storage {
  const StorageClass* format;
  std::string_view key;
  std::uint64_t numbers;
};

Result<Storage> read_storage(const PickleValue& value, std::string_view what) {
  const auto wrong = [&] { return failure(ErrorCode::corrupt, "{}: a tensor has no storage", what); };
  if (!value.is(Kind::persistent)) return wrong();
  const PickleValue& id = *value.items[0];
  if (!id.is(Kind::sequence) || id.items.size() < 5) return wrong();
  const auto& [tag, type, key, numbers] = std::tie(*id.items[0], *id.items[1], *id.items[2], *id.items[4]);
  if (!tag.is(Kind::text) || tag.text != "storage" || !type.is(Kind::global) || !key.is(Kind::text) ||
      !numbers.is(Kind::integer) || numbers.integer < 0)
    return wrong();
  if (id.items.size() > 5 && !id.items[5]->is(Kind::none))
    return failure(ErrorCode::unsupported,
                   "{}: storage {} is a view of another storage, which is not supported", what, key.text);
  const auto* format = std::ranges::find(kStorageClasses, type.text, &StorageClass::storage);
  if (format == kStorageClasses.end())
    return failure(ErrorCode::unsupported, "{}: unknown storage {}", what, type.text);
  return Storage{format, key.text, static_cast<std::uint64_t>(numbers.integer)};
}

// Reads a tuple of sizes. Returns nullopt if an item is negative or not an integer.
std::optional<std::vector<std::int64_t>> read_extents(const PickleValue& value) {
  if (!value.is(Kind::sequence) || value.items.size() > kRankMax) return std::nullopt;
  std::vector<std::int64_t> extents;
  for (const PickleValue* item : value.items) {
    if (!item->is(Kind::integer) || item->integer < 0) return std::nullopt;
    extents.push_back(item->integer);
  }
  return extents;
}

// Returns whether the elements are contiguous in row-major order.
bool is_dense(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    if (__builtin_mul_overflow(expected, shape[i], &expected)) return false;
  }
  return true;
}

// Reads a call _rebuild_tensor_v2(storage, offset, shape, strides, ...), or a Parameter that contains such
// a call.
Result<StoredTensor> read_tensor(std::string name, const PickleValue& value, const StorageOf& storage_of,
                                 std::string_view what) {
  if (value.is_call_of("torch._utils._rebuild_parameter") && !value.items[1]->items.empty() &&
      !value.items[1]->items[0]->is_call_of("torch._utils._rebuild_parameter"))
    return read_tensor(std::move(name), *value.items[1]->items[0], storage_of, what);
  if (!value.is_call_of("torch._utils._rebuild_tensor_v2") &&
      !value.is_call_of("torch._utils._rebuild_tensor")) {
    return failure(
        ErrorCode::unsupported, "{}: {} must be a dense tensor, got {}", what, name,
        value.is(Kind::call) && value.items[0]->is(Kind::global) ? value.items[0]->text : "other data");
  }
  const auto& arguments = value.items[1]->items;
  if (arguments.size() < 4 || !arguments[1]->is(Kind::integer) || arguments[1]->integer < 0)
    return failure(ErrorCode::corrupt, "{}: tensor {} has no offset into its storage", what, name);
  TRY(const Storage storage, read_storage(*arguments[0], what));
  const auto shape = read_extents(*arguments[2]), strides = read_extents(*arguments[3]);
  if (!shape || !strides || shape->size() != strides->size())
    return failure(ErrorCode::corrupt, "{}: tensor {} has no shape or no strides", what, name);
  if (!is_dense(*shape, *strides))
    return failure(ErrorCode::unsupported,
                   "{}: tensor {} [{}] must be stored row by row, but has the strides {}", what, name,
                   fmt::join(*shape, ", "), fmt::join(*strides, ", "));
  const auto bytes = storage_of(storage.key);
  if (!bytes)
    return failure(ErrorCode::corrupt, "{}: tensor {} needs the file {}, which is missing", what, name,
                   storage.key);

  std::uint64_t size = storage.format->bytes, begin = 0;
  bool fits = !__builtin_mul_overflow(static_cast<std::uint64_t>(arguments[1]->integer), size, &begin);
  for (const std::int64_t extent : *shape)
    fits = fits && !__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size);
  if (!fits || begin > bytes->size() || size > bytes->size() - begin)
    return failure(ErrorCode::corrupt, "{}: tensor {} [{}] is larger than its storage of {} bytes", what,
                   name, fmt::join(*shape, ", "), bytes->size());
  return StoredTensor{.name = std::move(name),
                      .format = storage.format->name,
                      .dtype = storage.format->dtype,
                      .shape = *shape,
                      .bytes = bytes->subspan(begin, size)};
}

// Reads the tensors of a dict or an OrderedDict. The result is ascending by name.
Result<std::vector<StoredTensor>> read_dictionary(const PickleValue& top, const StorageOf& storage_of,
                                                  std::string_view what) {
  const bool ordered = top.is_call_of("collections.OrderedDict");
  if (!ordered && !top.is(Kind::dict))
    return failure(ErrorCode::unsupported, "{}: the file must contain a dictionary of tensors", what);
  std::vector<StoredTensor> tensors;
  for (std::size_t i = ordered ? 2 : 0; i + 1 < top.items.size(); i += 2) {
    const PickleValue& key = *top.items[i];
    if (!key.is(Kind::text)) return failure(ErrorCode::corrupt, "{}: a tensor has no name", what);
    TRY(StoredTensor tensor, read_tensor(std::string(key.text), *top.items[i + 1], storage_of, what));
    tensors.push_back(std::move(tensor));
  }
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  const auto twice = std::ranges::adjacent_find(tensors, {}, &StoredTensor::name);
  if (twice != tensors.end())
    return failure(ErrorCode::corrupt, "{}: tensor {} occurs twice", what, twice->name);
  return tensors;
}

// The archive has the entries NAME/data.pkl, and NAME/data/KEY for each storage.
Result<std::vector<StoredTensor>> parse_archive(Bytes file, std::string_view what) {
  TRY(const std::vector<ZipEntry> entries, parse_zip(file, what));
  constexpr std::string_view kPickle = "/data.pkl";
  std::map<std::string_view, Bytes> by_name;
  for (const ZipEntry& entry : entries) by_name.emplace(entry.name, entry.bytes);
  const auto pickle =
      std::ranges::find_if(by_name, [&](const auto& e) { return e.first.ends_with(kPickle); });
  if (pickle == by_name.end())
    return failure(ErrorCode::corrupt,
                   "{}: the file is a ZIP archive without data.pkl, so torch.save did not write it", what);
  const std::string folder(pickle->first.substr(0, pickle->first.size() - kPickle.size()));
  const auto order = by_name.find(folder + "/byteorder");
  if (order != by_name.end() &&
      (order->second.size() != 6 || std::memcmp(order->second.data(), "little", 6) != 0))
    return failure(ErrorCode::unsupported, "{}: the numbers must be in little-endian order", what);
  TRY(const Pickle read, read_pickle(pickle->second, what));
  return read_dictionary(
      *read.top,
      [&](std::string_view key) -> std::optional<Bytes> {
        const auto found = by_name.find(fmt::format("{}/data/{}", folder, key));
        if (found == by_name.end()) return std::nullopt;
        return found->second;
      },
      what);
}

// Files written before PyTorch 1.6 begin with this magic number, as a pickle.
constexpr std::string_view kOldBegin = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

// The magic number is followed by four pickles: version, machine, dictionary, and the storages' keys. Then
// each storage follows: an 8-byte count, and its numbers.
Result<std::vector<StoredTensor>> parse_old_file(Bytes file, std::string_view what) {
  Bytes rest = file.subspan(kOldBegin.size());
  const auto next = [&]() -> Result<Pickle> {
    TRY(Pickle pickle, read_pickle(rest, what));
    rest = rest.subspan(pickle.bytes);
    return pickle;
  };
  TRY([[maybe_unused]] const Pickle version, next());
  TRY([[maybe_unused]] const Pickle machine, next());
  TRY(const Pickle dictionary, next());
  TRY(const Pickle keys, next());
  std::map<std::string_view, std::uint64_t> widths;  // bytes per element, by the storage's key
  for (const PickleValue& value : dictionary.values) {
    if (!value.is(Kind::persistent)) continue;
    TRY(const Storage storage, read_storage(value, what));
    widths.emplace(storage.key, storage.format->bytes);
  }
  std::map<std::string_view, Bytes> storages;
  for (const PickleValue* key : keys.top->items) {
    const auto width = widths.find(key->text);
    std::uint64_t bytes = 0;
    if (rest.size() >= sizeof bytes) std::memcpy(&bytes, rest.data(), sizeof bytes);
    if (width == widths.end() || rest.size() < sizeof bytes ||
        __builtin_mul_overflow(bytes, width->second, &bytes) || bytes > rest.size() - sizeof bytes)
      return failure(ErrorCode::corrupt, "{}: storage {} is incomplete", what, key->text);
    storages.emplace(key->text, rest.subspan(sizeof bytes, bytes));
    rest = rest.subspan(sizeof bytes + bytes);
  }
  return read_dictionary(
      *dictionary.top,
      [&](std::string_view key) -> std::optional<Bytes> {
        const auto found = storages.find(key);
        if (found == storages.end()) return std::nullopt;
        return found->second;
      },
      what);
}

}  // namespace

Result<std::vector<StoredTensor>> parse_torch_file(std::span<const std::byte> file, std::string_view what) {
  if (is_zip(file)) return parse_archive(file, what);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with(kOldBegin)) return parse_old_file(file, what);
  return failure(ErrorCode::corrupt, "{}: the file was not written by torch.save", what);
}

}  // namespace octavo
