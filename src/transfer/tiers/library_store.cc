#include "transfer/tiers/library_store.h"

#include <dlfcn.h>

#include <vector>

#include "transfer/tiers/octavo_kv_store.h"

namespace octavo {
namespace {

constexpr std::string_view kScheme = "library:";
constexpr const char* kSymbol = "octavo_kv_store";

class LibraryStore final : public StoreClient {
 public:
  LibraryStore(const octavo_kv_store_calls& store, void* handle) : store_(store), handle_(handle) {}
  ~LibraryStore() override { store_.close(handle_); }

  Result<std::size_t> leading(std::span<const std::string> keys) override {
    TRY(const std::vector<bool> stored, contains(keys));
    return static_cast<std::size_t>(std::ranges::find(stored, false) - stored.begin());
  }
  Result<std::vector<bool>> contains(std::span<const std::string> keys) override {
    std::vector<unsigned char> stored(keys.size());
    TRY_VOID(
        checked(store_.contains(handle_, names_of(keys).data(), keys.size(), stored.data()), "contains"));
    return std::vector<bool>(stored.begin(), stored.end());
  }
  Result<bool> get(std::string_view key, std::span<std::byte> value) override {
    const int got = store_.get(handle_, std::string(key).c_str(), value.data(), value.size());
    TRY_VOID(checked(got, "get"));
    return got > 0;
  }
  Result<> set(std::string_view key, std::span<const std::byte> value) override {
    return checked(store_.set(handle_, std::string(key).c_str(), value.data(), value.size()), "set");
  }
  Result<> remove(std::span<const std::string> keys) override {
    return checked(store_.remove(handle_, names_of(keys).data(), keys.size()), "remove");
  }

 private:
  static std::vector<const char*> names_of(std::span<const std::string> keys) {
    std::vector<const char*> names;
    for (const std::string& key : keys) names.push_back(key.c_str());
    return names;
  }
  static Result<> checked(int code, const char* call) {
    if (code >= 0) return {};
    return failure(ErrorCode::unavailable, "the store's {} failed with {}", call, code);
  }

  const octavo_kv_store_calls& store_;
  void* const handle_;
};

Result<const octavo_kv_store_calls*> load(const std::string& path) {
  // The library is never unloaded, because threads that it started may run until the process ends.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return invalid("", "{}", dlerror());
  const auto find = reinterpret_cast<decltype(&::octavo_kv_store)>(dlsym(library, kSymbol));
  const octavo_kv_store_calls* store = find == nullptr ? nullptr : find();
  if (store == nullptr) return invalid("", "{} has no {}()", path, kSymbol);
  if (store->version != OCTAVO_KV_STORE_VERSION)
    return invalid("", "{} has version {} of the interface, but this program needs {}", path, store->version,
                   OCTAVO_KV_STORE_VERSION);
  return store;
}

}  // namespace

std::string library_url(std::string_view path, std::string_view config) {
  return fmt::format("{}{}#{}", kScheme, path, config);
}

bool is_library_url(std::string_view text) { return text.starts_with(kScheme); }

Result<ConnectStore> library_store_at(std::string_view url) {
  url.remove_prefix(kScheme.size());
  const std::size_t end = std::min(url.find('#'), url.size());
  const std::string config(url.substr(std::min(end + 1, url.size())));
  TRY(const octavo_kv_store_calls* store, load(std::string(url.substr(0, end))));
  return [store, config]() -> Result<std::unique_ptr<StoreClient>> {
    char error_text[256] = {};
    void* handle = store->open(config.c_str(), error_text, sizeof error_text - 1);
    if (handle == nullptr) return failure(ErrorCode::unavailable, "cannot open the store: {}", error_text);
    return std::make_unique<LibraryStore>(*store, handle);
  };
}

}  // namespace octavo
