#include "faces/sections/tree_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/claim_file.h"
#include "base/hex.h"
#include "base/sha256.h"

namespace lmemo {
namespace {

constexpr std::string_view kSuffix = ".stat";

// Every part with its length, so that no two lists give the same text.
void append_part(std::string& text, std::string_view part) {
  text += std::to_string(part.size()) + ":";
  text += part;
}

constexpr size_t kShortName = 24;
std::string short_name(const Digest& digest) { return digest.hex().substr(0, kShortName); }

Digest view_of(const SectionSource& source, const SyncOptions& options) {
  std::string text;
  for (const auto* globs : {&source.include, &source.exclude}) {
    append_part(text, std::to_string(globs->size()));
    for (const std::string& glob : *globs) append_part(text, glob);
  }
  append_part(text, std::to_string(source.max_files));
  append_part(text, std::to_string(source.max_bytes_per_file));
  append_part(text, options.use_default_excludes ? "default excludes" : "");
  append_part(text, options.use_ignore_files ? "ignore files" : "");
  return sha256(bytes_of(text));
}

}  // namespace

std::string TreeLabel::text() const {
  std::string text;
  for (const std::string* part : {&root, &tokenizer_name, &tokenizer, &chat_template, &eos})
    append_part(text, *part);
  return text;
}

std::optional<TreeLabel> TreeLabel::parse(std::string_view text) {
  TreeLabel label;
  for (std::string* part :
       {&label.root, &label.tokenizer_name, &label.tokenizer, &label.chat_template, &label.eos}) {
    size_t bytes = 0, digits = 0;
    for (; digits < text.size() && digits < 9 && text[digits] >= '0' && text[digits] <= '9'; ++digits)
      bytes = bytes * 10 + static_cast<size_t>(text[digits] - '0');
    if (digits == 0 || digits >= text.size() || text[digits] != ':') return std::nullopt;
    text.remove_prefix(digits + 1);
    if (bytes > text.size()) return std::nullopt;
    *part = text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return text.empty() ? std::optional(label) : std::nullopt;
}

std::string TreeLabel::changes_since(const TreeLabel& other) const {
  std::string changes;
  const auto compare = [&](std::string_view name, const std::string& before, const std::string& after,
                           size_t shown) {
    if (before == after) return;
    const auto said = [&](const std::string& value) {
      return value.empty() ? std::string("none") : value.substr(0, shown) + (value.size() > shown ? "…" : "");
    };
    changes +=
        (changes.empty() ? "" : "; ") + std::string(name) + " changed: " + said(before) + " → " + said(after);
  };
  compare("tokenizer", other.tokenizer, tokenizer, 12);
  compare("chat_template", other.chat_template, chat_template, 12);
  compare("eos", other.eos, eos, 60);
  return changes;
}

TreeLabel label_of(const std::filesystem::path& root, const SectionRecipe& recipe) {
  return {root.string(), recipe.tokenizer_name, recipe.tokenizer_identity.hex(),
          recipe.chat_template ? recipe.chat_template->hex() : "",
          recipe.eos_token ? "text " + *recipe.eos_token : "none"};
}

TreePlace place_of(const std::filesystem::path& store_directory, const std::filesystem::path& root,
                   const SectionSource& source, const SyncOptions& options, const SectionRecipe& recipe) {
  TreePlace place;
  place.folder = store_directory / "sections" / short_name(sha256(bytes_of(root.string())));
  const Digest view = view_of(source, options), identity = recipe.identity();
  place.file = place.folder / (short_name(view) + "-" + short_name(identity) + std::string(kSuffix));
  place.owner = sha256(bytes_of(root.string() + view.hex() + identity.hex()));
  return place;
}

std::vector<FoundMemory> tree_memories(const std::filesystem::path& store_directory,
                                       const std::filesystem::path& root) {
  std::vector<FoundMemory> found;
  std::error_code error;
  namespace fs = std::filesystem;
  for (const fs::directory_entry& folder : fs::directory_iterator(store_directory / "sections", error)) {
    std::error_code ignored;
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path(), ignored)) {
      if (file.path().extension() != kSuffix) continue;
      auto memory = StatMemory::load_any(file.path());
      if (!memory) continue;
      const auto label = TreeLabel::parse(memory->label());
      if (label && (root.empty() || label->root == root.string()))
        found.push_back({file.path(), *label, std::move(memory), file.last_write_time(ignored)});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const FoundMemory& a, const FoundMemory& b) { return a.file < b.file; });
  return found;
}

std::vector<FoundMemory> current_memories(std::vector<FoundMemory> all, const TreePlace* being_made,
                                          const std::string& its_tokenizer_name) {
  const auto view_of = [](const std::filesystem::path& file, const std::string& tokenizer_name) {
    return std::tuple(file.parent_path(), file.filename().string().substr(0, kShortName), tokenizer_name);
  };
  std::map<decltype(view_of({}, {})), const FoundMemory*> newest;
  for (const FoundMemory& memory : all) {
    const FoundMemory*& best = newest[view_of(memory.file, memory.label.tokenizer_name)];
    if (!best || best->used < memory.used) best = &memory;
  }
  const auto is_current = [&](const FoundMemory& memory) {
    const auto view = view_of(memory.file, memory.label.tokenizer_name);
    if (being_made && view == view_of(being_made->file, its_tokenizer_name))
      return memory.file == being_made->file;
    return newest[view] == &memory;
  };
  std::vector<FoundMemory> current;
  for (const FoundMemory& memory : all)
    if (is_current(memory)) current.push_back(memory);
  return current;
}

bool is_anybody_syncing(const std::filesystem::path& store_directory) {
  std::error_code error, ignored;
  for (const auto& folder : std::filesystem::directory_iterator(store_directory / "sections", error)) {
    const std::filesystem::path file = folder.path() / kClaimsName;
    if (!std::filesystem::exists(file, ignored)) continue;
    auto claims = ClaimFile::open(file);
    if (claims.ok() && !claims->try_claim(0, kClaimCount)) return true;
  }
  return false;
}

std::optional<FoundMemory> other_recipe(const TreePlace& place, const TreeLabel& label) {
  namespace fs = std::filesystem;
  const std::string view = place.file.filename().string().substr(0, kShortName);
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(place.folder, error)) {
    const std::string name = file.path().filename().string();
    std::error_code ignored;
    if (name.starts_with(view) && file.path() != place.file && file.path().extension() == kSuffix)
      files.emplace_back(file.last_write_time(ignored), file.path());
  }
  std::sort(files.rbegin(), files.rend());
  std::optional<FoundMemory> best;
  for (const auto& [time, file] : files) {
    auto memory = StatMemory::load_any(file);
    const auto other = memory ? TreeLabel::parse(memory->label()) : std::nullopt;
    if (!other) continue;
    const bool is_same_tokenizer = !label.has_other_tokenizer(*other);
    if (!best || is_same_tokenizer) best = FoundMemory{file, *other, std::move(memory), time};
    if (is_same_tokenizer) break;
  }
  return best;
}

}  // namespace lmemo
