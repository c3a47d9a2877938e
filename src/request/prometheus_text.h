// Functions that write Prometheus' text format 0.0.4.
#pragma once

#include <string>
#include <string_view>

#include "request/histogram.h"

namespace octavo {

// Escapes backslashes, quotes and line feeds in a label value.
std::string escaped_label(std::string_view value);

// Appends the lines of a histogram. `labels` is the text between the braces, or "".
void append_histogram(std::string& text, std::string_view name, std::string_view labels,
                      const Histogram& histogram);

}  // namespace octavo
