/* A store of KV blocks in a shared library: `octavo serve` loads it for
 *
 *   --kv-transfer-config '{"kv_connector": "NAME", "kv_connector_module_path": "/path/to/library.so",
 *                          "kv_role": "kv_both", "kv_connector_extra_config": {..}}'
 *
 * and keeps in it what it would keep in a Redis server: values under names, of one size for a model and its
 * format. What stays, and for how long, is the store's business. What it gives back is believed only as far
 * as the block's own header and checksum say the same. C11 or later, C++. */
#ifndef OCTAVO_KV_STORE_H
#define OCTAVO_KV_STORE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCTAVO_KV_STORE_VERSION 1

/* Of all functions but the first two: several threads call them at once, on one handle each, and may wait;
 * negative: it failed, and the handle is closed. The store is then left alone for ten seconds. */
struct octavo_kv_store_calls {
  int version; /* OCTAVO_KV_STORE_VERSION */
  /* config: kv_connector_extra_config, as JSON. Null: it failed, and the text, ended by a zero, says why. */
  void* (*open)(const char* config, char* error, size_t error_size);
  void (*close)(void* handle);
  /* there[i]: 1 where there is a value named keys[i], else 0. */
  int (*contains)(void* handle, const char* const* keys, size_t count, unsigned char* there);
  /* 1: `value` has all `size` bytes of it. 0: there is none of that name and size. */
  int (*get)(void* handle, const char* key, void* value, size_t size);
  int (*set)(void* handle, const char* key, const void* value, size_t size);
  int (*remove)(void* handle, const char* const* keys, size_t count);
};

/* What the library exports. */
const struct octavo_kv_store_calls* octavo_kv_store(void);

#ifdef __cplusplus
}
#endif

#endif
