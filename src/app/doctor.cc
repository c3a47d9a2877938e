// octavo doctor: shows the properties and limits of this machine, and gives advice.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/environment.h"
#include "app/machine.h"
#include "base/thread_pool.h"
#include "dist/nccl_library.h"
#include "kernels/backends.h"
#include "local/find_model.h"

namespace octavo {
namespace {

// Finds the best instruction set that the processor supports, and what it lacks for a better one.
void examine_processor(Machine& machine) {
  for (const CpuIsa isa : kCpuIsas) {
    if (isa == CpuIsa::amx_modelled) continue;  // only for tests
    const auto backend = make_cpu_backend({.threads = 1, .isa = isa});
    if (backend) {
      machine.instructions = name(isa);
      machine.lacking.clear();
    } else if (backend.error().message.find("lacks") != std::string::npos && machine.lacking.empty()) {
      machine.lacking = fmt::format("not {}: {}", name(isa), backend.error().message);
    }
  }
}

Machine this_machine(const HubFlags& hub) {
  Machine machine;
  read_machine_files("/", machine);
  machine.usable = usable_processors();
  examine_processor(machine);
  using Text = Result<std::string>;
  const auto gpu = make_cuda_backend();
  machine.gpu = gpu ? Text(gpu->device->name()) : std::unexpected(gpu.error());
  const auto nccl = NcclLibrary::open();
  machine.nccl = nccl ? Text((*nccl)->version()) : std::unexpected(nccl.error());
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  machine.open_files = files.rlim_cur;
  machine.model_cache = cache_dir(hub);
  examine_model_cache(machine);
  return machine;
}

}  // namespace

void add_doctor(CLI::App& program, Outcome&) {
  CLI::App* command =
      program.add_subcommand("doctor", "Show what this machine supports, its limits, and what to change");
  auto hub = std::make_shared<HubFlags>();
  add_cache_flag(*command, *hub, environment);
  command->callback([hub] { fmt::print("{}", doctor_page(this_machine(*hub))); });
}

}  // namespace octavo
