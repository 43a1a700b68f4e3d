// Long work that Ctrl-C can stop and a progress callback can follow.
//
// The work runs in a thread of its own that never touches Python; the calling thread waits without the GIL
// and looks at signals and progress twenty times a second. Asking Python from inside the work was rejected:
// the work may hold a lock of the store for which a find() in another thread, which keeps the GIL, is
// waiting.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <optional>

#include "lmemo/progress.h"
#include "lmemo/result.h"

namespace lmemo::python {

// Calls `progress` (a callable or None) with Progress objects. Raises what `progress` or a signal handler
// raised, after the work has ended.
void run_watched(nanobind::handle progress, const std::function<void(const Watch&)>& work);

// The same for work with a result. An error is returned, not raised.
template <typename Work>
auto run_with_result(nanobind::handle progress, Work&& work) {
  std::optional<decltype(work(Watch{}))> result;
  run_watched(progress, [&](const Watch& watch) { result.emplace(work(watch)); });
  return std::move(*result);
}

}  // namespace lmemo::python
