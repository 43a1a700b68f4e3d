// Where the stat memories of source trees are, in the store's directory, and what their labels say:
//
//   sections/TREE/VIEW-RECIPE.stat     TREE: the root; VIEW: globs and limits; RECIPE: tokenizer and options
//   sections/TREE/claims.lock
//
// A note in an entry is the key under which the section is stored, its number how many tokens it has.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lmemo/sections.h"
#include "sources/stat_memory.h"

namespace lmemo {

inline constexpr char kClaimsName[] = "claims.lock";
inline constexpr uint64_t kClaimCount = 4096;  // All paths of a tree hash into so many.

// The label of a memory, as text lines.
struct TreeLabel {
  std::string root;
  std::string tokenizer_name;
  std::string tokenizer;      // Hex.
  std::string chat_template;  // Hex, or empty.
  std::string eos;            // "none", or "text " and the text.

  std::string text() const;
  static std::optional<TreeLabel> parse(std::string_view text);
  // "tokenizer changed: a1b2… → c3d4…; eos changed: …"
  std::string changes_since(const TreeLabel& other) const;
  bool has_other_tokenizer(const TreeLabel& other) const { return tokenizer != other.tokenizer; }
};

TreeLabel label_of(const std::filesystem::path& root, const SectionRecipe& recipe);

struct TreePlace {
  std::filesystem::path folder;  // sections/TREE
  std::filesystem::path file;
  Digest owner;
};
TreePlace place_of(const std::filesystem::path& store_directory, const std::filesystem::path& root,
                   const SectionSource& source, const SyncOptions& options, const SectionRecipe& recipe);

struct FoundMemory {
  std::filesystem::path file;
  TreeLabel label;
  std::shared_ptr<const StatMemory> memory;
  std::filesystem::file_time_type used = {};  // When a sync last went by it.
};
// All that are there and sound; those of one root if it is given.
std::vector<FoundMemory> tree_memories(const std::filesystem::path& store_directory,
                                       const std::filesystem::path& root = {});
// Those that still count: of one tree and view, and tokenizers of one name, the one that was used last. The others are what a changed
// tokenizer or option left. `being_made`: a sync that has not remembered anything yet counts as the last.
std::vector<FoundMemory> current_memories(std::vector<FoundMemory> all, const TreePlace* being_made = nullptr,
                                          const std::string& its_tokenizer_name = {});
// Does anybody, but for the caller's own claims, work on a tree of this store?
bool is_anybody_syncing(const std::filesystem::path& store_directory);
// A memory of the same tree that another recipe made, to tell why a section is not there: one with the same tokenizer if there
// is one, else the youngest.
std::optional<FoundMemory> other_recipe(const TreePlace& place, const TreeLabel& label);

}  // namespace lmemo
