// The section cache: the tokens of every file of a source tree, computed once. An unchanged tree costs a directory walk, a
// changed file costs that file.
//
//   SectionCache cache(store, store_directory, recipe);
//   LMEMO_ASSIGN(const SectionRun run, cache.sync(sources, {.sequence_len = 2048}));
//   for (size_t i = 0; i < run.size(); ++i) { LMEMO_ASSIGN(const TokenRow row, run.row(i)); train(row); }
//
// Identity: the content (byte order mark dropped, CRLF and CR as LF), the tokenizer, its chat template, the end-of-sequence
// text. Never a path or a time. Stored is the whole section, so the sequence length is no part of the key: it is applied when a row
// is handed out, and a new length neither misses nor serves a wrong cut.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/key.h"
#include "lmemo/progress.h"
#include "lmemo/result.h"
#include "lmemo/store.h"
#include "lmemo/tokenizer.h"

namespace lmemo {

inline constexpr char kSectionsKind[] = "sections";
inline constexpr uint64_t kDefaultSequenceLen = 2048;

// A directory or a file, and which of its files count.
struct SectionSource {
  std::filesystem::path path;
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  uint64_t max_files = 0;           // 0: all.
  uint64_t max_bytes_per_file = 0;  // 0: any size.
  // A strict document's directory: a symbolic link that leaves it is an error. Empty: one that leaves the source is named and left out.
  std::filesystem::path confine_to = {};
};

// All that changes the ids besides the content.
struct SectionRecipe {
  std::shared_ptr<const Tokenizer> tokenizer;
  Digest tokenizer_identity;                 // Of the tokenizer.json alone.
  std::optional<Digest> chat_template = {};  // Of the template that stands beside it.
  // Put behind every section that does not end with it, before it is tokenised.
  std::optional<std::string> eos_token = {};
  std::string tokenizer_name = {};  // For people; no part of the key.

  Result<Key> key_of(const Digest& content) const;
  Digest identity() const;  // Of all this, without a content.
};

enum class Outcome : uint8_t { pending, hit, miss, binary, not_utf8, failed };
enum class MissReason : uint8_t { fresh, edited, tokenizer_changed, options_changed, evicted, damaged };
inline constexpr size_t kMissReasons = 6;
std::string_view name_of(MissReason reason);  // "new", "edited", "tokenizer_changed", …

struct SyncOptions {
  uint64_t sequence_len = kDefaultSequenceLen;  // 0: rows are not cut.
  bool keep_end = false;                        // Cut the beginning instead of the end.
  bool use_default_excludes = true;
  bool use_ignore_files = false;
  bool rehash = false;    // Read every file, whatever its stamp says.
  bool use_cache = true;  // If not, nothing is read from the store and nothing written to it.
  // For all sections in the store, from this run on; 0: what the store was opened with.
  uint64_t max_bytes = 0;
  unsigned threads = 0;  // 0: one per core.
  // The store's, used or not: no part of a source that it lies in. Empty: it is nowhere.
  std::filesystem::path own_directory = {};
  // Called with each notice at once, from any thread: that a corpus will not fit is told before it is tokenised.
  std::function<void(const std::string&)> on_notice = {};
};

struct SyncStats {
  std::string run_id;
  int64_t started_ns = 0;
  uint64_t total_sections = 0;
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  std::array<uint64_t, kMissReasons> misses_by_reason = {};
  uint64_t total_tokens = 0;          // Of the rows, after the cut.
  uint64_t cut_sections = 0;          // Longer than the sequence length.
  double total_tokenize_seconds = 0;  // Added up over threads.
  double saved_seconds = 0;           // What the hits would have taken, by the rate of this and earlier runs.
  double wall_seconds = 0;
  uint64_t cache_bytes_after = 0;
  uint64_t files_read = 0;  // Opened; 0 in a warm run.
  uint64_t source_bytes = 0;
  uint64_t skipped_binary = 0, skipped_not_utf8 = 0, skipped_too_large = 0, skipped_over_limit = 0,
           skipped_links = 0;
  uint64_t failed = 0;       // Could not be read or tokenised; named in the notices.
  uint64_t failed_puts = 0;  // Tokenised, but the store had no room.

  double hit_rate() const {
    return total_sections == 0 ? 0.0 : static_cast<double>(cache_hits) / static_cast<double>(total_sections);
  }
};

// The ids of a section where they lie in the store, packed in 2, 3 or 4 bytes. Valid while this lives.
class TokenRow {
 public:
  TokenRow(Bytes packed, unsigned bytes_per_id, std::optional<Hit> hit,
           std::shared_ptr<const std::string> owned)
      : packed_(packed), bytes_per_id_(bytes_per_id), hit_(std::move(hit)), owned_(std::move(owned)) {}
  size_t size() const { return packed_.size() / bytes_per_id_; }
  Bytes packed() const { return packed_; }
  unsigned bytes_per_id() const { return bytes_per_id_; }
  void unpack(uint32_t* to) const;
  std::vector<uint32_t> ids() const;

 private:
  Bytes packed_;
  unsigned bytes_per_id_;
  std::optional<Hit> hit_;
  std::shared_ptr<const std::string> owned_;
};

// What a sync found. Keeps the store open.
class SectionRun {
 public:
  const SyncStats& stats() const;
  // Sections in the order of the sources, then of their paths. Skipped files are not among them.
  size_t size() const;
  std::filesystem::path path(size_t index) const;
  uint64_t token_count(size_t index) const;  // Of the row, after the cut.
  Outcome outcome(size_t index) const;
  MissReason reason(size_t index) const;  // Of a miss.
  Result<Key> key(size_t index) const;
  // Found in the store, or, if that lost it meanwhile, made again from the file; an error if that has changed.
  Result<TokenRow> row(size_t index) const;
  // Why the section at this path hit or missed, in words; an error if the run did not see it.
  Result<std::string> explain(const std::filesystem::path& path) const;
  unsigned bytes_per_id() const;  // Of nearly all rows.
  // Something the user should hear: unreadable files, a corpus that will not fit.
  const std::vector<std::string>& notices() const;

  struct State;
  explicit SectionRun(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

class SectionCache {
 public:
  // `directory` is the store's, for what is remembered of trees and for the metrics; empty: nothing is remembered.
  SectionCache(std::shared_ptr<Store> store, std::filesystem::path directory, SectionRecipe recipe);
  // An error if a source is not there, or if the tokenizer no longer gives the ids that it gave this store before. A file that cannot be read is a notice. Several processes may sync one tree at once: they
  // share the work. One that is stopped is recorded all the same, and keeps what it made.
  Result<SectionRun> sync(std::span<const SectionSource> sources, const SyncOptions& options = {},
                          const Watch& watch = {}) const;

 private:
  std::shared_ptr<Store> store_;
  std::filesystem::path directory_;
  SectionRecipe recipe_;
};

}  // namespace lmemo
