#include "kernels/kv_exchange.h"

namespace octavo {

const KvExchange* kv_exchange(std::string_view backend) {
  if (backend == "cpu") return &cpu::kKvExchange;
  if (backend == "reference") return &reference::kKvExchange;
  if (backend == "cuda") return cuda_kv_exchange();
  return nullptr;
}

}  // namespace octavo
