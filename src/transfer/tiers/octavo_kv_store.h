/* C interface of a store of KV blocks that is implemented in a shared library. `octavo serve` loads it with
 *
 *   --kv-transfer-config '{"kv_connector": "NAME", "kv_connector_module_path": "/path/to/library.so",
 *                          "kv_role": "kv_both", "kv_connector_extra_config": {..}}'
 *
 * The store keeps values under keys, as a Redis server does. All values of one model and format have the same
 * size. The store itself decides which values it keeps, and for how long. Octavo verifies each value that it
 * reads by the header and the checksum of the block. Requires C11 or later, or C++. */
#ifndef OCTAVO_KV_STORE_H
#define OCTAVO_KV_STORE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCTAVO_KV_STORE_VERSION 1

/* Several threads call the functions at the same time, each with its own handle. The functions may wait. If
 * contains(), get(), set() or remove() return a negative number, the call has failed: Octavo closes the
 * handle, and does not use the store for ten seconds. */
struct octavo_kv_store_calls {
  int version; /* OCTAVO_KV_STORE_VERSION */
  /* Returns a handle, or null and a message in `error`, which ends with a zero byte. config:
   * kv_connector_extra_config as JSON. */
  void* (*open)(const char* config, char* error, size_t error_size);
  void (*close)(void* handle);
  /* Sets stored[i] to 1 if the store has a value for keys[i], else to 0. */
  int (*contains)(void* handle, const char* const* keys, size_t count, unsigned char* stored);
  /* Returns 1 if it has written all `size` bytes to `value`; 0: there is no value with this key and size. */
  int (*get)(void* handle, const char* key, void* value, size_t size);
  int (*set)(void* handle, const char* key, const void* value, size_t size);
  int (*remove)(void* handle, const char* const* keys, size_t count);
};

/* The only function that the library must export. */
const struct octavo_kv_store_calls* octavo_kv_store(void);

#ifdef __cplusplus
}
#endif

#endif
