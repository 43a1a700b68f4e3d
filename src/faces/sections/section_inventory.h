// What of a store belongs to which source tree, by the memories of the trees: for show, prune and clear.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "lmemo/sections.h"

namespace lmemo {

struct TreePlace;

struct SectionTotal {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

struct SectionInventory {
  SectionTotal all;
  // No tree leads to them any more, after an edit or another tokenizer. Of the whole store.
  SectionTotal orphans;
  std::map<std::string, SectionTotal> by_tokenizer;  // By the hex of its identity.
  std::map<std::string, std::string> tokenizer_names;
};

// Of these roots (as the file system resolves them); of the whole store if there are none.
Result<SectionInventory> take_inventory(Store& store, const std::filesystem::path& directory,
                                        const std::vector<std::filesystem::path>& roots);
using DigestSet = std::unordered_set<Digest>;
using SectionFilter = std::function<bool(const EntryInfo&)>;
// Those of these roots that no other tree uses, or all if there are none; not used since `before_ns`.
SectionFilter sections_of(const std::filesystem::path& directory,
                          const std::vector<std::filesystem::path>& roots, int64_t before_ns = INT64_MAX);
// Erases them and gives the space back.
Result<RemovalReport> remove_sections(Store& store, const SectionFilter& goes, const Watch& watch = {});
// Erases orphans; how many bytes of them. `place` is the tree of a sync that is under way. What others are making while this looks is left
// alone.
Result<uint64_t> erase_orphans(Store& store, const std::filesystem::path& directory, const TreePlace* place,
                               const std::string& tokenizer_name);
// What is remembered of these roots, or of all if there are none. The sections themselves stay.
void forget_roots(const std::filesystem::path& directory, const std::vector<std::filesystem::path>& roots);

// What tokenizer.json or model directory at `path`, already loaded or not, means for sections.
enum class EosChoice { if_known, always, never };
using LoadTokenizerFile =
    std::function<Result<std::shared_ptr<const Tokenizer>>(const std::filesystem::path& file)>;
Result<SectionRecipe> section_recipe(const std::filesystem::path& path, const std::string& pattern,
                                     EosChoice eos, const std::optional<std::string>& eos_token,
                                     const LoadTokenizerFile& load);

}  // namespace lmemo
