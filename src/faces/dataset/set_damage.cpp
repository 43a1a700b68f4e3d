#include "faces/dataset/set_damage.h"

#include "base/hex.h"
#include "faces/dataset/set_directory.h"
#include "faces/dataset/split_writer.h"
#include "sources/text_file.h"

namespace lmemo::dataset {
namespace {

namespace fs = std::filesystem;

DatasetDifference damage(const std::string& name, std::string found, std::string expected) {
  return {std::string(kDamagePrefix) + name, std::move(found), std::move(expected)};
}

std::string size_text(uint64_t byte_count) { return std::to_string(byte_count) + " bytes"; }

Result<std::optional<DatasetDifference>> look_at_data(const fs::path& set, const DataFile& file,
                                                      SeenFiles& seen, bool rehash, const Watch& watch) {
  const fs::path path = set / file.name;
  const std::optional<FileStamp> stamp = look_at(path);
  if (!stamp) return {damage(file.name, "missing", size_text(file.byte_count))};
  if (stamp->byte_count != file.byte_count)
    return {damage(file.name, size_text(stamp->byte_count), size_text(file.byte_count))};
  if (!rehash && seen.has_data(file.name, *stamp, file.checksum)) return {std::nullopt};
  const Result<uint64_t> sum = file_checksum(path, watch);
  if (!sum.ok() && sum.error().code == ErrorCode::interrupted) return sum.error();
  const std::string expected = "checksum " + file.checksum;
  if (!sum.ok()) return {damage(file.name, sum.error().message, expected)};
  const std::string found = to_hex(*sum);
  if (found != file.checksum) return {damage(file.name, "checksum " + found, expected)};
  seen.note_data(file.name, path, *stamp, found);
  return {std::nullopt};
}

// They are short, and what we wrote into them is known to the byte.
void look_at_text(const fs::path& set, const fs::path& name, const std::string& expected,
                  std::vector<DatasetDifference>& differences) {
  std::error_code error;
  if (!fs::is_regular_file(set / name, error)) {
    differences.push_back(damage(name.string(), "missing", "present"));
    return;
  }
  const Result<std::string> text = read_text_file(set / name, uint64_t{1} << 20);
  if (!text.ok() || *text != expected)
    differences.push_back(damage(name.string(), "another content", "as written"));
}

}  // namespace

Result<std::vector<DatasetDifference>> damage_of(const fs::path& set, const SetFacts& facts, SeenFiles& seen,
                                                 bool rehash, const Watch& watch) {
  std::vector<DatasetDifference> differences;
  look_at_text(set, fs::path(kDatasetFolder) / "dataset_dict.json",
               dataset_dict_json(facts.data_files.size() > 1), differences);
  for (const DataFile& file : facts.data_files) {
    LMEMO_ASSIGN(std::optional<DatasetDifference> difference, look_at_data(set, file, seen, rehash, watch));
    if (difference) differences.push_back(std::move(*difference));
    const fs::path folder = fs::path(file.name).parent_path();
    const std::string split = folder.filename().string();
    look_at_text(set, folder / kStateFile, state_json(split, fingerprint_of(facts.identity, split)),
                 differences);
    look_at_text(set, folder / kInfoFile, kInfoText, differences);
  }
  return differences;
}

}  // namespace lmemo::dataset
