// The pictures of a report, each an HTML fragment with a text alternative.
#pragma once

#include <string>
#include <vector>

#include "cli/report/report_data.h"

namespace lmemo::cli {

// A table with a bar in each row.
std::string share_bars(const std::string& caption, const std::vector<ReportShare>& shares);
std::string count_bars(const std::string& caption, const std::vector<ReportCount>& counts);
// Hit rate of run after run, as a line.
std::string run_lines(const std::vector<ReportRun>& runs, const std::vector<ReportFace>& faces);
std::string chunk_map(const ReportChunks& chunks);
std::string histogram(const std::string& caption, const std::string& counted, const std::string& unit,
                      const std::vector<ReportBin>& bins);
std::string presence_map(const ReportPresence& presence);

}  // namespace lmemo::cli
