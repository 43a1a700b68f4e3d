// Fills a report from what is there. Everything is read once and aggregated on the way.
#pragma once

#include <filesystem>

#include "cli/report/report_data.h"
#include "lmemo/progress.h"
#include "lmemo/store.h"

namespace lmemo::cli {

// Sizes by kind, model and tokenizer.
Status gather_sizes(Store& store, ReportData& report, const Watch& watch);
// Which layers of which prompts have their states.
Status gather_presence(Store& store, ReportData& report);
// What runs found and what they computed, and why they missed.
Status gather_runs(const std::filesystem::path& store, ReportData& report);
// The map of a directory of chunks, and how well its rows are filled.
Status gather_chunks(const std::filesystem::path& directory, ReportData& report, const Watch& watch);
// The sentence on top: the first thing that needs attention, or that nothing does.
void judge(ReportData& report);

}  // namespace lmemo::cli
