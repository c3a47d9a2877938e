#include "dist/nccl_library.h"

#include <dlfcn.h>

namespace octavo {

Result<std::shared_ptr<const NcclLibrary>> NcclLibrary::open(const std::string& name) {
  // The library is never closed, because its threads run its code until the process ends.
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return failure(ErrorCode::unsupported, "NCCL is not available: {}", dlerror());
  auto nccl = std::make_shared<NcclLibrary>();
  std::string missing;
  const auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) missing = symbol;
  };
  find(nccl->get_version, "ncclGetVersion");
  find(nccl->get_unique_id, "ncclGetUniqueId");
  find(nccl->comm_init_rank, "ncclCommInitRank");
  find(nccl->comm_abort, "ncclCommAbort");
  find(nccl->comm_get_async_error, "ncclCommGetAsyncError");
  find(nccl->get_error_string, "ncclGetErrorString");
  find(nccl->group_start, "ncclGroupStart");
  find(nccl->group_end, "ncclGroupEnd");
  find(nccl->all_reduce, "ncclAllReduce");
  find(nccl->all_gather, "ncclAllGather");
  find(nccl->broadcast, "ncclBroadcast");
  find(nccl->send, "ncclSend");
  find(nccl->receive, "ncclRecv");
  if (!missing.empty())
    return failure(ErrorCode::unsupported, "{} has no {}, because it is too old", name, missing);
  return nccl;
}

std::string NcclLibrary::version() const {
  int code = 0;
  if (get_version(&code) != kSuccess) return "of an unknown version";
  return fmt::format("{}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
}

Result<> NcclLibrary::check(Code code, const char* call) const {
  if (code == kSuccess || code == kInProgress) return {};
  return failure(ErrorCode::unavailable, "NCCL: {}: {}", call, get_error_string(code));
}

}  // namespace octavo
