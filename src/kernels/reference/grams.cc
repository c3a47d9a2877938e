#include "kernels/grams.h"

#include "kernels/reference/reference.h"

namespace octavo::reference {

void gram_rows(Stream&, const GramRowsArgs& args) { gram_rows_on_host(args); }

}  // namespace octavo::reference
