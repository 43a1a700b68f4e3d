// What a run keeps: for each source its listing and what became of each file.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codec/token_width.h"
#include "lmemo/sections.h"
#include "sources/directory_walk.h"
#include "sources/source_file.h"
#include "sources/stat_memory.h"

namespace lmemo {

struct FileState {
  StatEntry entry;  // note: the key; number: tokens, before the cut.
  Outcome outcome = Outcome::pending;
  MissReason reason = MissReason::fresh;
};

struct SourceState {
  SectionSource source;
  SourceListing listing;
  std::vector<FileState> files;
};

struct SectionRun::State {
  struct Place {
    uint32_t source;
    uint32_t file;
  };
  std::shared_ptr<Store> store;
  SectionRecipe recipe;
  SyncOptions options;
  SyncStats stats;
  std::vector<SourceState> sources;
  std::vector<Place> rows;
  std::vector<std::string> notices;
  std::string changed_fields;  // Since the last sync by another recipe, in words.

  const FileState& file(size_t row) const { return sources[rows[row].source].files[rows[row].file]; }
  uint64_t cut(uint64_t tokens) const {
    return options.sequence_len > 0 ? std::min(tokens, options.sequence_len) : tokens;
  }
};

// What the tokenizer gets: normalised, with the end-of-sequence text. The view is into one of the two buffers.
std::string_view text_to_tokenize(std::string_view normalized, const std::optional<std::string>& eos,
                                  std::string& bytes, std::string& scratch);
// Neither truncation nor padding of the tokenizer's file count: as a trainer calls it.
EncodeOptions section_encode_options();
TokenWidth width_of(const SectionRecipe& recipe);

}  // namespace lmemo
