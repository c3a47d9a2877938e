#include "transfer/peers/nixl/nixl_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "transfer/peers/ucx_plugin.h"

namespace octavo {
namespace {

// The wheels contain libraries that the program also has, in other versions, for example protobuf. With
// RTLD_DEEPBIND, NIXL uses those of the wheel. Sanitizers do not support this flag.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnSymbols = 0;
#else
constexpr int kOwnSymbols = RTLD_DEEPBIND;
#endif

struct NixlFunctions {
  void* library;
  std::string missing{};  // name of the first function that the library lacks

  template <class Function>
  void find(Function*& out, const char* name) {
    out = reinterpret_cast<Function*>(dlsym(library, name));
    if (out == nullptr && missing.empty()) missing = name;
  }
};

std::string find_all(void* library, NixlLibrary& out) {
  NixlFunctions functions{library};
  functions.find(out.create_agent, "nixl_capi_create_configured_agent");
  functions.find(out.destroy_agent, "nixl_capi_destroy_agent");
  functions.find(out.create_params, "nixl_capi_create_params");
  functions.find(out.destroy_params, "nixl_capi_destroy_params");
  functions.find(out.create_backend, "nixl_capi_create_backend");
  functions.find(out.destroy_backend, "nixl_capi_destroy_backend");
  functions.find(out.create_reg_dlist, "nixl_capi_create_reg_dlist");
  functions.find(out.destroy_reg_dlist, "nixl_capi_destroy_reg_dlist");
  functions.find(out.reg_dlist_add_desc, "nixl_capi_reg_dlist_add_desc");
  functions.find(out.register_mem, "nixl_capi_register_mem");
  functions.find(out.deregister_mem, "nixl_capi_deregister_mem");
  functions.find(out.create_xfer_dlist, "nixl_capi_create_xfer_dlist");
  functions.find(out.destroy_xfer_dlist, "nixl_capi_destroy_xfer_dlist");
  functions.find(out.xfer_dlist_add_desc, "nixl_capi_xfer_dlist_add_desc");
  functions.find(out.load_remote_md, "nixl_capi_load_remote_md");
  functions.find(out.invalidate_remote_md, "nixl_capi_invalidate_remote_md");
  functions.find(out.create_xfer_req, "nixl_capi_create_xfer_req");
  functions.find(out.post_xfer_req, "nixl_capi_post_xfer_req");
  functions.find(out.get_xfer_status, "nixl_capi_get_xfer_status");
  functions.find(out.release_xfer_req, "nixl_capi_release_xfer_req");
  functions.find(out.destroy_xfer_req, "nixl_capi_destroy_xfer_req");
  functions.find(out.gen_notif, "nixl_capi_gen_notif");
  return functions.missing;
}

// The wheels' UCX loads libibverbs, and that loads the system's RDMA drivers with their libraries. Two
// versions of libnl are then loaded, and the process crashes at its end. Without RDMA devices, UCX does not
// need them.
void leave_out_rdma_drivers() {
  std::error_code none;
  if (!std::filesystem::exists("/sys/class/infiniband", none)) setenv("UCX_MODULES", "^ib", 0);
}

Result<NixlLibrary> open_nixl(const std::string& path) {
  set_ucx_variables();
  leave_out_rdma_drivers();
  void* const library = dlopen(path.c_str(), RTLD_NOW | kOwnSymbols);
  if (library == nullptr)
    return failure(ErrorCode::unsupported,
                   "NIXL is not available: {}; set kv_connector_extra_config.nixl_library to the path of "
                   "libnixl_capi.so",
                   dlerror());
  NixlLibrary functions;
  if (const std::string missing = find_all(library, functions); !missing.empty())
    return failure(ErrorCode::corrupt, "{} has no function {}: NIXL 1.5 is needed", path, missing);
  return functions;
}

}  // namespace

Result<const NixlLibrary*> load_nixl(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, Result<NixlLibrary>> loaded;
  const std::lock_guard lock(mutex);
  const auto found = loaded.find(path);
  const Result<NixlLibrary>& library =
      found != loaded.end() ? found->second : loaded.emplace(path, open_nixl(path)).first->second;
  if (!library) return std::unexpected(library.error());
  return &*library;
}

std::string nixl_error(int status) {
  constexpr std::array<std::string_view, 6> kNames{
      "invalid parameter", "error of the backend", "invalid state", "exception", "no telemetry", "not found"};
  if (status < 0 && -status <= std::ssize(kNames))
    return std::string(kNames[static_cast<std::size_t>(-status - 1)]);
  return fmt::format("status {}", status);
}

}  // namespace octavo
