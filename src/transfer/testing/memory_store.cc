// Implements octavo_kv_store.h in memory, for tests and as an example of a store in a shared library.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "transfer/tiers/octavo_kv_store.h"

namespace {

std::mutex mutex;  // guards the variables below
std::map<std::string, std::string> values;
bool broken = false;

void* open_store(const char* config, char* error, size_t error_size) {
  if (std::strstr(config, "refuse") != nullptr) {
    std::strncpy(error, "it was asked to refuse", error_size);
    return nullptr;
  }
  const std::lock_guard lock(mutex);
  broken = std::strstr(config, "break") != nullptr;
  return &values;
}

void close_store(void*) {}

int contains(void*, const char* const* keys, size_t count, unsigned char* stored) {
  const std::lock_guard lock(mutex);
  for (size_t i = 0; i < count; ++i) stored[i] = values.contains(keys[i]) ? 1 : 0;
  return broken ? -5 : 0;
}

int get(void*, const char* key, void* value, size_t size) {
  const std::lock_guard lock(mutex);
  const auto found = values.find(key);
  if (found == values.end() || found->second.size() != size) return 0;
  std::memcpy(value, found->second.data(), size);
  return 1;
}

int set(void*, const char* key, const void* value, size_t size) {
  const std::lock_guard lock(mutex);
  values[key].assign(static_cast<const char*>(value), size);
  return 0;
}

int remove_all(void*, const char* const* keys, size_t count) {
  const std::lock_guard lock(mutex);
  for (size_t i = 0; i < count; ++i) values.erase(keys[i]);
  return 0;
}

constexpr struct octavo_kv_store_calls kStore{
    OCTAVO_KV_STORE_VERSION, open_store, close_store, contains, get, set, remove_all};

}  // namespace

extern "C" const octavo_kv_store_calls* octavo_kv_store(void) { return &kStore; }
