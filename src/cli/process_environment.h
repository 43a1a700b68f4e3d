// The environment of an ordinary process: standard streams, environment variables, working directory.
#pragma once

#include "cli/cli.h"

namespace lmemo {

// `interrupted` is left empty: only the owner of the process may handle signals.
CliEnvironment process_environment();

// Looks upward from `start` for the texts that come with lmemo: share/lmemo/corpus of an installation,
// examples/corpus of a source tree. Empty if there are none.
std::filesystem::path find_shipped_corpus(const std::filesystem::path& start);

}  // namespace lmemo
