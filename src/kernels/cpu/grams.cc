#include "kernels/grams.h"

#include "kernels/cpu/cpu.h"

namespace octavo::cpu {

void gram_rows(Stream&, const GramRowsArgs& args) { gram_rows_on_host(args); }

}  // namespace octavo::cpu
