// The directory of a chunk set, and what is known of the files in it.
//
//   DIR/plan/000000.plan      what belongs to which chunk (plan.h)
//   DIR/chunks/000042.chunk   published chunks, immutable
//   DIR/claims                byte 42 is locked while somebody builds chunk 42 (base/claim_file.h)
//   DIR/writing/              private files of live builders, or left behind by dead ones
//   DIR/aside/                damaged and stale chunks that `repair` replaced
//   DIR/registry.seg          size, time and digests of every chunk, so that opening a set opens no chunk: derived
//   DIR/metadata.json         the same for people and scripts: derived
#pragma once

#include <map>
#include <string>

#include "base/file_system.h"
#include "faces/chunks/chunk_writer.h"

namespace lmemo::chunks {

struct SetPaths {
  Path directory;

  Path chunks() const { return directory / "chunks"; }
  Path claims() const { return directory / "claims"; }
  Path writing() const { return directory / "writing"; }
  Path aside() const { return directory / "aside"; }
  Path registry() const { return directory / "registry.seg"; }
  Path metadata() const { return directory / "metadata.json"; }
  Path chunk(uint64_t number) const { return chunks() / name_of_chunk(number); }
  static std::string name_of_chunk(uint64_t number);
  // nullopt for a name that no chunk has.
  static std::optional<uint64_t> number_of_chunk(std::string_view name);

  Status make() const;  // All directories, parents too.
  // Says so if the directory holds something else: chunks among foreign files are easily lost with them.
  Status check_is_ours() const;
};

struct RegistryEntry {
  uint64_t number = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  ChunkCounts counts;
  uint32_t blocks = 0;
  uint32_t rows_per_block = 0;
  Digest sha256;  // Of the whole file; zeros if nobody has read it yet.
  Digest content_sha256;
  Digest key;

  bool describes(uint64_t file_bytes, int64_t file_modified_ns) const {
    return bytes == file_bytes && modified_ns == file_modified_ns;
  }
};
using Registry = std::map<uint64_t, RegistryEntry>;

// An empty one if there is none, or if it is damaged: it is only a memory.
Registry load_registry(const SetPaths& paths);
// Puts these in and keeps the others; those in `gone` are taken out. Several processes may do so at once.
Status update_registry(const SetPaths& paths, const Registry& entries,
                       const std::vector<uint64_t>& gone = {});

std::string encode_registry(const Registry& registry);
Result<Registry> decode_registry(Bytes value);

// The files in chunks/, with what the file system says of them. By number.
struct FoundChunk {
  uint64_t number = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
};
Result<std::vector<FoundChunk>> list_chunks(const SetPaths& paths);

// From the description in the file; sha256 stays zeros.
Result<RegistryEntry> describe_chunk(const SetPaths& paths, const FoundChunk& found);

}  // namespace lmemo::chunks
