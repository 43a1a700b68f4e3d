// lmemo prune, evict, compact and clear: give space back.
#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/commands/removal.h"

namespace lmemo::cli {
namespace {

// Least recently used first, until what is left fits. The store decides by the same rule, by whole segments where
// it can, so the numbers are close but not exact.
Result<Preview> preview_eviction(CommandContext& context, Store& store, uint64_t target_bytes) {
  struct Candidate {
    int64_t used_ns;
    uint64_t stored_bytes;
    std::string kind;
    Digest digest;
  };
  std::vector<Candidate> candidates;
  uint64_t left = 0;
  LMEMO_TRY(store.scan({}, [&](const EntryInfo& entry) {
    candidates.push_back({std::max(entry.written_ns, entry.accessed_ns), entry.stored_bytes,
                          std::string(entry.kind), entry.digest});
    left += entry.stored_bytes;
    return !context.was_interrupted();
  }));
  if (context.was_interrupted()) return Error{ErrorCode::interrupted, "while counting"};
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.used_ns < b.used_ns; });
  Preview preview;
  const bool wants_digests = lists_digests(context);
  for (const Candidate& candidate : candidates) {
    if (left <= target_bytes) break;
    left -= candidate.stored_bytes;
    preview.add(candidate.kind, candidate.stored_bytes);
    if (wants_digests) preview.digests.push_back(candidate.digest);
  }
  return preview;
}

int run_prune(CommandContext& context) {
  const double older_than_seconds = *context.arguments.seconds("older-than");
  const std::string kind = context.arguments.text("kind").value_or("");
  const int64_t before_ns =
      system_clock().now_ns() - static_cast<int64_t>(std::min(older_than_seconds * 1e9, 9e18));
  return remove_with_consent(
      context,
      [&](Store& store) {
        return preview_matching(context, store, {kind, {}}, [&](const EntryInfo& entry) {
          return std::max(entry.written_ns, entry.accessed_ns) < before_ns;
        });
      },
      [&](Store& store) { return store.prune(older_than_seconds, kind, context.console.watch()); });
}

int run_evict(CommandContext& context) {
  const uint64_t target_bytes = *context.arguments.byte_count("to");
  return remove_with_consent(
      context, [&](Store& store) { return preview_eviction(context, store, target_bytes); },
      [&](Store& store) { return store.evict(target_bytes, context.console.watch()); });
}

int run_clear(CommandContext& context) {
  const std::string kind = context.arguments.text("kind").value_or("");
  return remove_with_consent(
      context,
      [&](Store& store) {
        return preview_matching(context, store, {kind, {}}, [](const EntryInfo&) { return true; });
      },
      [&](Store& store) { return store.clear(kind); });
}

int run_compact(CommandContext& context) {
  auto store = open_existing_store(context, Access::change);
  if (!store.ok()) return fail(context, store.error());
  const auto report = (*store)->compact(context.console.watch());
  if (!report.ok()) return fail(context, report.error());
  return show_removal(context, *report, "compacted");
}

}  // namespace

std::vector<CommandSpec> space_commands() {
  const OptionSpec kind = {
      .name = "kind", .type = ValueType::text, .value_name = "KIND", .help = "only entries of this kind"};
  CommandSpec compact;
  compact.name = "compact";
  compact.summary = "give space back to the disk, while others read and write";
  compact.details = "Rewrites what is alive into new segments and unlinks the old ones. Removes no entry.";
  compact.examples = {{"lmemo compact", "Disk use falls to about the live bytes that `lmemo show` tells."}};
  compact.run = run_compact;
  return {
      removing_command("prune", "drop entries that were neither stored nor found for a while",
                       {{.name = "older-than",
                         .type = ValueType::duration,
                         .value_name = "AGE",
                         .help = "how long, such as 30d, 12h or 1d12h",
                         .is_required = true},
                        kind},
                       {{"lmemo prune --older-than 30d", "Shows what would go, asks, removes."},
                        {"lmemo prune --older-than 12h --kind forward --dry-run", "Only look."}},
                       run_prune),
      removing_command("evict", "drop the least recently used entries until the store fits",
                       {{.name = "to",
                         .type = ValueType::byte_count,
                         .value_name = "SIZE",
                         .help = "what the store may take afterwards, such as 5GiB",
                         .is_required = true}},
                       {{"lmemo evict --to 5GiB --yes", "For a cron job: does not ask."}}, run_evict),
      compact,
      removing_command("clear", "remove every entry, or every entry of a kind", {kind},
                       {{"lmemo clear --kind forward", "Removes one kind and leaves the others alone."},
                        {"lmemo clear --yes", "Empties the store without asking."}},
                       run_clear),
  };
}

}  // namespace lmemo::cli
