#include "kernels/kv_exchange.h"

namespace octavo {

const KvExchange* kv_exchange(std::string_view backend) {
  if (backend == "cpu") return &cpu::kKvExchange;
  if (backend == "reference") return &reference::kKvExchange;
  return nullptr;
}

}  // namespace octavo
