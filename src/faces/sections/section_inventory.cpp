#include "faces/sections/section_inventory.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/sha256.h"
#include "faces/sections/tree_memory.h"
#include "faces/tokenizer_canary.h"

namespace lmemo {
namespace {

bool is_one_of(const std::string& root, const std::vector<std::filesystem::path>& roots) {
  return std::any_of(roots.begin(), roots.end(),
                     [&](const std::filesystem::path& path) { return path.string() == root; });
}

void add_keys(const StatMemory& memory, DigestSet& keys) {
  for (size_t i = 0; i < memory.size(); ++i)
    if (const StatEntry entry = memory.entry(i); entry.verdict == FileVerdict::text) keys.insert(entry.note);
}

// What a run has put and not yet remembered, or was killed before it could, is no orphan: it is younger than all memories.
struct Reachable {
  DigestSet keys;
  int64_t newest_ns = 0;

  explicit Reachable(const std::vector<FoundMemory>& current) {
    for (const FoundMemory& found : current) {
      add_keys(*found.memory, keys);
      const auto since_1970 = std::chrono::file_clock::to_sys(found.used).time_since_epoch();
      newest_ns = std::max<int64_t>(newest_ns,
                                    std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count());
    }
  }
  bool is_orphan(const EntryInfo& entry) const {
    return entry.written_ns <= newest_ns && !keys.contains(entry.digest);
  }
};

}  // namespace

Result<uint64_t> erase_orphans(Store& store, const std::filesystem::path& directory, const TreePlace* place,
                               const std::string& tokenizer_name) {
  constexpr int64_t kRecentNs = 3'600'000'000'000;
  const Reachable reachable(current_memories(tree_memories(directory), place, tokenizer_name));
  const int64_t before_ns = is_anybody_syncing(directory) ? system_clock().now_ns() - kRecentNs : INT64_MAX;
  std::vector<Digest> orphans;
  uint64_t bytes = 0;
  LMEMO_TRY(store.scan({kSectionsKind, {}}, [&](const EntryInfo& entry) {
    if (reachable.is_orphan(entry) && entry.written_ns < before_ns) {
      orphans.push_back(entry.digest);
      bytes += entry.stored_bytes;
    }
    return true;
  }));
  for (const Digest& digest : orphans) LMEMO_TRY(store.erase(digest));
  return bytes;
}

Result<SectionInventory> take_inventory(Store& store, const std::filesystem::path& directory,
                                        const std::vector<std::filesystem::path>& roots) {
  SectionInventory inventory;
  DigestSet wanted;
  const std::vector<FoundMemory> memories = tree_memories(directory);
  const Reachable reachable(current_memories(memories));
  for (const FoundMemory& found : memories) {
    if (is_one_of(found.label.root, roots)) add_keys(*found.memory, wanted);
    inventory.tokenizer_names[found.label.tokenizer] = found.label.tokenizer_name;
  }
  LMEMO_TRY(store.scan({kSectionsKind, {}}, [&](const EntryInfo& entry) {
    if (reachable.is_orphan(entry)) {
      ++inventory.orphans.entries;
      inventory.orphans.bytes += entry.stored_bytes;
    }
    if (!roots.empty() && !wanted.contains(entry.digest)) return true;
    std::string tokenizer = "unknown";
    if (const Result<Key> key = entry.key(); key.ok())
      for (const Field& field : key->fields())
        if (field.name == "tokenizer")
          if (const Blob* blob = std::get_if<Blob>(&field.value.variant());
              blob && blob->bytes.size() == sizeof(Digest)) {
            Digest digest;
            std::copy_n(reinterpret_cast<const std::byte*>(blob->bytes.data()), sizeof digest,
                        digest.bytes.begin());
            tokenizer = digest.hex();
          }
    for (SectionTotal* total : {&inventory.all, &inventory.by_tokenizer[tokenizer]}) {
      ++total->entries;
      total->bytes += entry.stored_bytes;
    }
    return true;
  }));
  return inventory;
}

SectionFilter sections_of(const std::filesystem::path& directory,
                          const std::vector<std::filesystem::path>& roots, int64_t before_ns) {
  if (roots.empty()) return [before_ns](const EntryInfo& entry) { return entry.accessed_ns < before_ns; };
  DigestSet keys, others;
  for (const FoundMemory& found : tree_memories(directory))
    add_keys(*found.memory, is_one_of(found.label.root, roots) ? keys : others);
  for (const Digest& key : others) keys.erase(key);
  return [before_ns, keys = std::move(keys)](const EntryInfo& entry) {
    return entry.accessed_ns < before_ns && keys.contains(entry.digest);
  };
}

Result<RemovalReport> remove_sections(Store& store, const SectionFilter& goes, const Watch& watch) {
  RemovalReport report;
  std::vector<Digest> digests;
  LMEMO_TRY(store.scan({kSectionsKind, {}}, [&](const EntryInfo& entry) {
    if (goes(entry)) {
      digests.push_back(entry.digest);
      ++report.entries;
      report.stored_bytes += entry.stored_bytes;
    }
    return !watch.stopped();
  }));
  if (watch.stopped()) return Error{ErrorCode::interrupted, "before anything was removed"};
  report.disk_bytes_before = store.stats().disk_bytes;
  for (const Digest& digest : digests) LMEMO_TRY(store.erase(digest));
  LMEMO_TRY(store.flush());
  LMEMO_TRY(store.compact(watch));
  report.disk_bytes_after = store.stats().disk_bytes;
  return report;
}

void forget_roots(const std::filesystem::path& directory, const std::vector<std::filesystem::path>& roots) {
  for (const FoundMemory& found : tree_memories(directory)) {
    std::error_code ignored;
    if (roots.empty() || is_one_of(found.label.root, roots)) std::filesystem::remove(found.file, ignored);
  }
  if (roots.empty()) forget_canaries(directory);
}

Result<SectionRecipe> section_recipe(const std::filesystem::path& path, const std::string& pattern,
                                     EosChoice eos, const std::optional<std::string>& eos_token,
                                     const LoadTokenizerFile& load) {
  SectionRecipe recipe;
  recipe.tokenizer_name = path.string();
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(path, error);
  ModelSettings settings;
  if (!pattern.empty()) {
    LMEMO_ASSIGN(recipe.tokenizer, Tokenizer::load_tiktoken(path, {pattern}));
  } else {
    LMEMO_ASSIGN(recipe.tokenizer, load(is_directory ? path / "tokenizer.json" : path));
    LMEMO_ASSIGN(settings, ModelSettings::read(is_directory ? path : path.parent_path()));
  }
  recipe.tokenizer_identity = recipe.tokenizer->identity();
  if (is_directory && !settings.chat_templates.empty()) {
    std::string templates;
    for (const auto& [name, text] : settings.chat_templates)
      templates += std::to_string(name.size()) + ":" + name + std::to_string(text.size()) + ":" + text;
    recipe.chat_template = sha256(bytes_of(templates));
  }
  if (eos == EosChoice::never) return recipe;
  recipe.eos_token = eos_token;
  for (const auto& [role, token] : settings.special_tokens)
    if (!recipe.eos_token && role == "eos_token") recipe.eos_token = token;
  if (!recipe.eos_token && eos == EosChoice::always)
    return Error{ErrorCode::invalid_argument,
                 path.string() + ": names no eos_token; give it with --eos-token, or leave --eos away"};
  return recipe;
}

}  // namespace lmemo
