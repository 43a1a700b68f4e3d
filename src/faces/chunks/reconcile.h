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
  // What the plan should say: entries with their new content or their new place, sources with their new stamps.
  PlanPart revision;
};

// Nothing is written.
Result<Reconciliation> reconcile(const Plan& plan, const Watch& watch);

}  // namespace lmemo::chunks
