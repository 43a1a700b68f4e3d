// Which documents belong to which chunk. Made by a scan that tokenises nothing (plan_scan.h), kept in DIR/plan/ as
// segments 000000.plan, 000001.plan, …: each adds sources and entries, or puts newer ones in the place of older ones.
//
// A chunk is built from its entry alone, so any process may build any chunk, at any time, in any order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "faces/chunks/chunk_records.h"
#include "sources/directory_walk.h"

namespace lmemo::chunks {

enum class SourceType : uint8_t { json_lines = 0, text = 1 };  // The numbers are written to disk.

struct PlanSource {
  uint32_t number = 0;
  SourceType type = SourceType::json_lines;
  Path path;                   // Absolute.
  FileStamp stamp;             // When it was last scanned.
  uint64_t planned_bytes = 0;  // Of the uncompressed stream: what follows is new.
  uint64_t planned_lines = 0;
};

struct PlanRange {
  uint32_t source = 0;
  uint64_t begin = 0;  // In the uncompressed stream.
  uint64_t end = 0;
  uint64_t first_line = 1;
  uint64_t documents = 0;
  uint64_t first_hash = 0;    // XXH3 of the first document, to find the range again in an edited file.
  bool ends_in_line = false;  // The stream ended there without a newline.
  Digest sha256;
  bool operator==(const PlanRange&) const = default;
};

struct PlanEntry {
  uint64_t number = 0;
  std::vector<PlanRange> ranges;
  std::vector<uint32_t> duplicates;  // Documents of the chunk, by their number in it, that are left out.

  uint64_t documents() const;
  uint64_t bytes() const;
  std::vector<RangeContent> contents() const;
};

struct Plan {
  ChunkParameters parameters;
  std::string tokenizer_path;       // Where it was; for whoever builds without naming it.
  uint64_t chunk_sequences = 8000;  // Rows wanted in a chunk …
  uint64_t chunk_bytes = 0;         // … and the source bytes that give as many, about: where the scan cuts.
  uint64_t limit_documents = 0;     // 0: none.
  std::vector<std::string> inputs;  // As given, absolute.
  std::map<uint32_t, PlanSource> sources;
  std::vector<PlanEntry> entries;                     // By number, without gaps.
  std::vector<std::array<std::byte, 16>> texts_seen;  // With deduplication: the start of each text's SHA-256.
  uint32_t parts = 0;                                 // Files.

  uint64_t documents() const;
  Key key_of(const PlanEntry& entry) const { return chunk_key(entry.number, parameters, entry.contents()); }
};

// What one file adds.
struct PlanPart {
  std::vector<PlanSource> sources;
  std::vector<PlanEntry> entries;
  std::vector<std::array<std::byte, 16>> texts_seen;
};

// What a part adds or says anew.
void apply(Plan& plan, PlanPart& part);

// nullopt if there is no plan. `corruption` if one of its files is damaged.
Result<std::optional<Plan>> load_plan(const Path& directory);
// Adds a part to the plan on disk and to `plan`. Requires: the caller holds the plan's lock.
Status append_to_plan(const Path& directory, Plan& plan, PlanPart part);

// Exposed for tests and fuzzing.
std::string encode_entries(const std::vector<PlanEntry>& entries);
Result<std::vector<PlanEntry>> decode_entries(Bytes value);
std::string encode_sources(const std::vector<PlanSource>& sources);
Result<std::vector<PlanSource>> decode_sources(Bytes value);

}  // namespace lmemo::chunks
