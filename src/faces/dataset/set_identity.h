// What makes two sets the same, field by field, and the metadata.json that tells it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "faces/dataset/row_recipe.h"
#include "faces/dataset/seen_files.h"
#include "faces/dataset/split_writer.h"
#include "lmemo/dataset.h"

namespace lmemo::dataset {

// Changing what a set looks like on disk, or which rows a line becomes, changes this.
inline constexpr int kDatasetFormat = 1;

struct InputFile {
  std::filesystem::path path;
  bool is_eval = false;
  FileIdentity identity;
};

// Names as people know them: {"max_length", "512"}, {"train file 1", "sha256 ab12…"}.
using IdentityFields = std::map<std::string, std::string>;
IdentityFields identity_fields(const DatasetOptions& options, const TokenizerFacts& facts,
                               const RowRecipe& recipe, const std::vector<InputFile>& files);
Digest identity_digest(const IdentityFields& fields);
// What datasets calls so, of the split "train" or "eval".
std::string fingerprint_of(const IdentityFields& fields, const std::string& split);
std::string dataset_dict_json(bool has_eval);

std::vector<DatasetDifference> differences_between(const IdentityFields& built, const IdentityFields& asked);

struct DataFile {
  std::string name;  // Relative to the set.
  uint64_t byte_count = 0;
  std::string checksum;  // As metadata.json has it.
};
// How differences in the set's own files begin.
inline constexpr std::string_view kDamagePrefix = "data file ";

// What metadata.json says that a program asks for again.
struct SetFacts {
  IdentityFields identity;
  DatasetCounts counts;
  std::vector<DataFile> data_files;
};
// incompatible if it is not ours or of another version.
Result<SetFacts> read_set_facts(const std::string& metadata);

std::string metadata_json(const DatasetOptions& options, const TokenizerFacts& facts,
                          const std::vector<InputFile>& files, const IdentityFields& identity,
                          const DatasetCounts& counts,
                          const std::vector<std::pair<std::string, SplitTotals>>& splits);

}  // namespace lmemo::dataset
