// The flags that say what a data set is made of, the same for build and check.
#pragma once

#include <vector>

#include "cli/command_context.h"
#include "cli/command_table.h"
#include "lmemo/dataset.h"

namespace lmemo::cli {

std::vector<OptionSpec> dataset_option_specs();
// Without the output directory. An error is misuse.
Result<DatasetOptions> dataset_options(const CommandContext& context);

}  // namespace lmemo::cli
