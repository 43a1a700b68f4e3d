// The environment of an ordinary process: standard streams, environment variables, working directory.
#pragma once

#include "cli/cli.h"

namespace lmemo {

// `interrupted` is left empty: only the owner of the process may handle signals.
CliEnvironment process_environment();

// Writes out what is buffered. Returns the errno of the first failed write to standard output, 0 if all went well or
// if the reader just left (`lmemo show | head`).
int finish_output();

// Looks upward from `start` for the examples that come with lmemo: share/lmemo of an installation, examples of a
// source tree. Empty if there are none.
std::filesystem::path find_shipped_examples(const std::filesystem::path& start);

}  // namespace lmemo
