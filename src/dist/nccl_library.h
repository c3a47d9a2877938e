// NVIDIA's NCCL, loaded at run time, so that the program does not depend on it. Declares the functions of
// its public interface (version 2) that Octavo uses.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/error.h"

struct ncclComm;

namespace octavo {

struct NcclLibrary {
  using Comm = ncclComm*;
  using Code = int;
  struct UniqueId {
    char bytes[128];
  };
  static constexpr Code kSuccess = 0, kInProgress = 7;
  static constexpr int kBytes = 0, kFloat32 = 7;  // ncclDataType_t
  static constexpr int kSum = 0;

  // Returns an unsupported error if the library or one of its functions is missing.
  static Result<std::shared_ptr<const NcclLibrary>> open(const std::string& name = "libnccl.so.2");

  std::string version() const;  // such as "2.21.5"
  // Returns an unavailable error that describes `code`, unless the code means success.
  Result<> check(Code code, const char* call) const;

  Code (*get_version)(int*);
  Code (*get_unique_id)(UniqueId*);
  Code (*comm_init_rank)(Comm*, int ranks, UniqueId, int rank);
  Code (*comm_abort)(Comm);
  Code (*comm_get_async_error)(Comm, Code*);
  const char* (*get_error_string)(Code);
  Code (*group_start)();
  Code (*group_end)();
  // The parameters are: from, to, count, type, .., communicator, stream.
  Code (*all_reduce)(const void*, void*, std::size_t, int type, int operation, Comm, void*);
  Code (*all_gather)(const void*, void*, std::size_t, int type, Comm, void*);
  Code (*broadcast)(const void*, void*, std::size_t, int type, int root, Comm, void*);
  Code (*send)(const void*, std::size_t, int type, int peer, Comm, void*);
  Code (*receive)(void*, std::size_t, int type, int peer, Comm, void*);
};

}  // namespace octavo
