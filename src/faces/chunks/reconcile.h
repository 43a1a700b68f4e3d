// The plan against the sources as they are now. A source whose stamp is as it was is not opened.
//
// In a file of lines, ranges are found again wherever they went: what lies before an edit is where it was, what lies behind
// it begins with the line it began with. Only what lies between has changed.
#pragma once

#include "faces/chunks/plan.h"
#include "lmemo/progress.h"

namespace lmemo::chunks {

struct Reconciliation {
  std::vector<uint64_t> stale;    // Chunks whose sources changed.
  std::vector<uint64_t> lost;     // Chunks of which a source is gone: they cannot be built again.
  std::vector<std::string> gone;  // Those sources.
  std::vector<std::string>
      grown;  // Sources that have lines which no chunk has, but for those behind a limit.
  // What the plan should say: entries with their new content or their new place, sources with their new stamps.
  PlanPart revision;
};

// Nothing is written.
Result<Reconciliation> reconcile(const Plan& plan, const Watch& watch);

// Sources that are gone and found again under another name among `files`, byte for byte, with that name. What was appended to one
// meanwhile is left to the scan.
Result<std::vector<PlanSource>> moved_sources(const Plan& plan, const std::vector<Path>& files);

}  // namespace lmemo::chunks
