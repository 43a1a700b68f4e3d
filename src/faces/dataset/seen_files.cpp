#include "faces/dataset/seen_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/sha256.h"
#include "faces/dataset/split_writer.h"
#include "sources/byte_stream.h"
#include "sources/source_file.h"
#include "sources/text_file.h"

namespace lmemo::dataset {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 2;
// File systems stamp with a coarse clock, some with whole seconds.
constexpr int64_t kRacyNs = 2'000'000'000;

std::string full_name(const std::filesystem::path& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path.string() : absolute.lexically_normal().string();
}

bool is_settled(const FileStamp& stamp, int64_t now_ns) {
  return std::max(stamp.modified_ns, stamp.changed_ns) < now_ns - kRacyNs;
}

std::string line_of(const std::string& name, const std::optional<FileStamp>& stamp) {
  if (!stamp) return name + " -";
  return name + ' ' + std::to_string(stamp->byte_count) + ' ' + std::to_string(stamp->modified_ns) + ' ' +
         std::to_string(stamp->changed_ns) + ' ' + std::to_string(stamp->inode);
}

std::vector<std::filesystem::path> files_of_tokenizer(const std::filesystem::path& tokenizer) {
  std::error_code error;
  if (!std::filesystem::is_directory(tokenizer, error)) return {tokenizer};
  std::vector<std::filesystem::path> files;
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"})
    files.push_back(tokenizer / name);
  std::vector<std::filesystem::path> more;
  for (const auto& entry :
       std::filesystem::directory_iterator(tokenizer / "additional_chat_templates", error))
    more.push_back(entry.path());
  std::sort(more.begin(), more.end());
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

Json json_of(const FileStamp& stamp) {
  return {{"bytes", stamp.byte_count},
          {"modified_ns", stamp.modified_ns},
          {"changed_ns", stamp.changed_ns},
          {"inode", stamp.inode}};
}

FileStamp stamp_in(const Json& json) {
  return {json.at("bytes").get<uint64_t>(), json.at("modified_ns").get<int64_t>(),
          json.at("changed_ns").get<int64_t>(), json.at("inode").get<uint64_t>()};
}

Json json_of(const TokenizerFacts& facts) {
  Json json = {{"identity", facts.identity.hex()}, {"vocab_size", facts.vocab_size}};
  if (facts.eos_id) json["eos_id"] = *facts.eos_id;
  if (facts.pad_id) json["pad_id"] = *facts.pad_id;
  if (facts.has_chat_template) json["chat_template"] = facts.chat_template;
  if (!facts.foreign_engine.empty()) json["foreign_engine"] = facts.foreign_engine;
  return json;
}

TokenizerFacts facts_in(const Json& json) {
  TokenizerFacts facts;
  facts.identity = Digest::from_hex(json.at("identity").get<std::string>()).value();
  facts.vocab_size = json.at("vocab_size").get<uint64_t>();
  if (json.contains("eos_id")) facts.eos_id = json["eos_id"].get<uint32_t>();
  if (json.contains("pad_id")) facts.pad_id = json["pad_id"].get<uint32_t>();
  if (json.contains("chat_template")) {
    facts.chat_template = json["chat_template"].get<std::string>();
    facts.has_chat_template = true;
  }
  if (json.contains("foreign_engine")) facts.foreign_engine = json["foreign_engine"].get<std::string>();
  return facts;
}

}  // namespace

std::optional<FileStamp> look_at(const std::filesystem::path& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return stamp_of(status);
}

SeenFiles SeenFiles::load(const std::filesystem::path& file) {
  SeenFiles seen;
  const Result<std::string> text = read_text_file(file, uint64_t{64} << 20);
  if (!text.ok()) return seen;
  // Our own file, but anybody may have touched it: whatever is not as expected is nothing seen.
  try {
    const Json json = Json::parse(*text);
    if (json.at("version").get<int>() != kVersion) return seen;
    for (const auto& [name, entry] : json.at("files").items()) {
      const FileStamp stamp = stamp_in(entry);
      seen.files_[name] = {
          stamp, {stamp.byte_count, Digest::from_hex(entry.at("sha256").get<std::string>()).value()}};
    }
    for (const auto& [name, entry] : json.at("data_files").items())
      seen.data_[name] = {stamp_in(entry), entry.at("checksum").get<std::string>()};
    for (const auto& [name, entry] : json.at("tokenizers").items())
      seen.tokenizers_[name] = {entry.at("stamps").get<std::vector<std::string>>(), facts_in(entry)};
  } catch (const std::exception&) {
    return {};
  }
  return seen;
}

void SeenFiles::save(const std::filesystem::path& file) const {
  Json files = Json::object(), data = Json::object(), tokenizers = Json::object();
  for (const auto& [name, entry] : files_) {
    files[name] = json_of(entry.stamp);
    files[name]["sha256"] = entry.identity.sha256.hex();
  }
  for (const auto& [name, entry] : data_) {
    data[name] = json_of(entry.stamp);
    data[name]["checksum"] = entry.checksum;
  }
  for (const auto& [name, entry] : tokenizers_) {
    tokenizers[name] = json_of(entry.facts);
    tokenizers[name]["stamps"] = entry.stamps;
  }
  const Json json = {
      {"version", kVersion}, {"files", files}, {"data_files", data}, {"tokenizers", tokenizers}};
  const auto fresh = file.string() + "." + std::to_string(::getpid());
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  // A name that is not UTF-8 is replaced, and then just never found.
  if (!write_whole_file(fresh, json.dump(1, ' ', false, Json::error_handler_t::replace)).ok() ||
      !real_file_system().rename(fresh, file).ok())
    std::filesystem::remove(fresh, ignored);
}

std::optional<FileIdentity> SeenFiles::find(const std::filesystem::path& path) const {
  const auto found = files_.find(full_name(path));
  if (found == files_.end() || look_at(path) != found->second.stamp) return std::nullopt;
  return found->second.identity;
}

void SeenFiles::note(const std::filesystem::path& path, const FileStamp& before,
                     const FileIdentity& identity) {
  // Changed meanwhile: what was read is not what is there.
  if (look_at(path) != before || before.byte_count != identity.byte_count) return;
  if (!is_settled(before, system_clock().now_ns())) return;
  files_[full_name(path)] = {before, identity};
  has_changed_ = true;
}

bool SeenFiles::has_data(const std::string& name, const FileStamp& stamp, const std::string& checksum) const {
  const auto found = data_.find(name);
  return found != data_.end() && found->second.stamp == stamp && found->second.checksum == checksum;
}

void SeenFiles::note_data(const std::string& name, const std::filesystem::path& path, const FileStamp& before,
                          const std::string& checksum) {
  if (look_at(path) != before || !is_settled(before, system_clock().now_ns())) return;
  data_[name] = {before, checksum};
  has_changed_ = true;
}

std::string SeenFiles::tokenizer_name(const DatasetOptions& options) {
  return full_name(options.tokenizer) + "\n" + options.eos_token + "\n" + options.pad_token;
}

std::vector<std::string> SeenFiles::tokenizer_stamps(const std::filesystem::path& tokenizer) {
  std::vector<std::string> lines;
  const int64_t now_ns = system_clock().now_ns();
  for (const std::filesystem::path& file : files_of_tokenizer(tokenizer)) {
    const std::optional<FileStamp> stamp = look_at(file);
    if (stamp && !is_settled(*stamp, now_ns)) return {};
    lines.push_back(line_of(file.filename().string(), stamp));
  }
  return lines;
}

std::optional<TokenizerFacts> SeenFiles::find_tokenizer(const DatasetOptions& options) const {
  const auto found = tokenizers_.find(tokenizer_name(options));
  if (found == tokenizers_.end()) return std::nullopt;
  if (found->second.stamps != tokenizer_stamps(options.tokenizer)) return std::nullopt;
  // Another version of it is another tokenizer, though no file changed.
  if (const std::string& engine = found->second.facts.foreign_engine; !engine.empty())
    if (!options.foreign_engine || options.foreign_engine() != engine) return std::nullopt;
  return found->second.facts;
}

void SeenFiles::note_tokenizer(const DatasetOptions& options, const std::vector<std::string>& stamps_before,
                               const TokenizerFacts& facts) {
  if (stamps_before.empty() || stamps_before != tokenizer_stamps(options.tokenizer)) return;
  tokenizers_[tokenizer_name(options)] = {stamps_before, facts};
  has_changed_ = true;
}

Result<FileIdentity> identity_of_file(const std::filesystem::path& path, SeenFiles& seen, bool rehash,
                                      const Watch& watch) {
  if (!rehash)
    if (const std::optional<FileIdentity> known = seen.find(path)) return *known;
  const std::optional<FileStamp> before = look_at(path);
  LMEMO_ASSIGN(const auto file, ByteStream::open(path, {.hashes_file = true, .is_raw = true}));
  std::string buffer(size_t{1} << 20, '\0');
  while (true) {
    if (watch.stopped()) return Error{ErrorCode::interrupted, "while reading " + path.string()};
    watch.report({"compare files", file->file_bytes_read(), before ? before->byte_count : 0, "bytes"});
    LMEMO_ASSIGN(const size_t count, file->read(buffer));
    if (count < buffer.size()) break;
  }
  const FileIdentity identity{file->file_bytes_read(), file->file_digest()};
  if (before) seen.note(path, *before, identity);
  return identity;
}

}  // namespace lmemo::dataset
