// NIXL's library with the C interface, libnixl_capi.so. The program loads it at run time, so it does not
// depend on NIXL. The wheels nixl-cu12 and nixl-cu13 contain the library. The functions below have the
// names and the arguments of NIXL 1.5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace octavo {

// Handles of the library. Each is a different type, so that the compiler finds mixed-up arguments.
struct NixlAgentHandle;
struct NixlBackendHandle;
struct NixlParams;
struct NixlOptions;
struct NixlRegistrations;
struct NixlRanges;
struct NixlRequest;
struct NixlNotifications;

// Status codes. Negative numbers are errors.
inline constexpr int kNixlDone = 0, kNixlRunning = 1;
// Kinds of memory, and operations.
inline constexpr int kNixlDram = 0, kNixlVram = 1;
inline constexpr int kNixlRead = 0;

// Settings of an agent, with the layout of nixl_capi_agent_config_s.
struct NixlAgentSettings {
  bool progress_thread = true;
  bool listen_thread = false;
  int listen_port = 0;
  int thread_sync = 0;  // the caller serialises its calls
  unsigned workers = 1;
  std::uint64_t progress_delay_us = 0;
  std::uint64_t listen_delay_us = 0;
  bool telemetry = false;
};

struct NixlLibrary {
  // clang-format off
  int (*create_agent)(const char* name, const NixlAgentSettings*, NixlAgentHandle**);
  int (*destroy_agent)(NixlAgentHandle*);
  int (*create_params)(NixlParams**);
  int (*destroy_params)(NixlParams*);
  int (*create_backend)(NixlAgentHandle*, const char* plugin, NixlParams*, NixlBackendHandle**);
  int (*destroy_backend)(NixlBackendHandle*);
  int (*create_reg_dlist)(int memory, NixlRegistrations**);
  int (*destroy_reg_dlist)(NixlRegistrations*);
  int (*reg_dlist_add_desc)(NixlRegistrations*, std::uintptr_t, std::size_t, std::uint64_t device, const void* metadata, std::size_t);
  int (*register_mem)(NixlAgentHandle*, NixlRegistrations*, NixlOptions*);
  int (*deregister_mem)(NixlAgentHandle*, NixlRegistrations*, NixlOptions*);
  int (*create_xfer_dlist)(int memory, NixlRanges**);
  int (*destroy_xfer_dlist)(NixlRanges*);
  int (*xfer_dlist_add_desc)(NixlRanges*, std::uintptr_t, std::size_t, std::uint64_t device);
  int (*load_remote_md)(NixlAgentHandle*, const void*, std::size_t, char** agent_name);  // the caller frees the name
  int (*invalidate_remote_md)(NixlAgentHandle*, const char* agent_name);
  int (*create_xfer_req)(NixlAgentHandle*, int operation, NixlRanges* local, NixlRanges* remote, const char* agent_name, NixlRequest**, NixlOptions*);
  int (*post_xfer_req)(NixlAgentHandle*, NixlRequest*, NixlOptions*);
  int (*get_xfer_status)(NixlAgentHandle*, NixlRequest*);
  int (*release_xfer_req)(NixlAgentHandle*, NixlRequest*);
  int (*destroy_xfer_req)(NixlRequest*);
  int (*gen_notif)(NixlAgentHandle*, const char* agent_name, const void*, std::size_t, NixlOptions*);
  // clang-format on
};

// Loads the library at the first call. path: a file, or a name that the dynamic loader finds. Returns
// unsupported if the library is missing, or corrupt if it lacks a function.
Result<const NixlLibrary*> load_nixl(const std::string& path);

// Returns the name of a negative status code.
std::string nixl_error(int status);

}  // namespace octavo
