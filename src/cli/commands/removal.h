// What every command that removes entries does the same way: count, list, ask, remove, tell.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_context.h"
#include "cli/command_table.h"

namespace lmemo::cli {

struct Total {
  uint64_t entries = 0;
  uint64_t stored_bytes = 0;
};

// What a command is about to remove.
struct Preview {
  Total all;
  std::map<std::string, Total, std::less<>> by_kind;
  std::vector<Digest> digests;  // Filled only if they are to be listed.

  void add(std::string_view kind, uint64_t stored_bytes);
};

bool lists_digests(const CommandContext& context);
Result<Preview> preview_matching(CommandContext& context, Store& store, const ScanFilter& filter,
                                 const std::function<bool(const EntryInfo&)>& goes);

using PreviewMaker = std::function<Result<Preview>(Store&)>;
using Remover = std::function<Result<RemovalReport>(Store&)>;
int remove_with_consent(CommandContext& context, const PreviewMaker& preview_of, const Remover& remove);
int show_removal(CommandContext& context, const RemovalReport& report, const std::string& verb);

// With --dry-run and --yes, and the words about them.
CommandSpec removing_command(std::string name, std::string summary, std::vector<OptionSpec> options,
                             std::vector<Example> examples, int (*run)(CommandContext&));

}  // namespace lmemo::cli
