// A report as one HTML page that needs nothing else: no network, no script, no font. Light and dark, readable without
// seeing it: every picture has a text, and every number of a picture stands in a table as well.
#pragma once

#include <string>

#include "cli/report/report_data.h"

namespace lmemo::cli {

std::string report_page(const ReportData& report);

}  // namespace lmemo::cli
