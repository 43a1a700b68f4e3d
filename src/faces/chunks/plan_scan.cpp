#include "faces/chunks/plan_scan.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "base/sha256.h"
#include "codec/checksum.h"
#include "faces/chunks/documents.h"
#include "faces/chunks/range_reader.h"
#include "sources/glob.h"

namespace lmemo::chunks {
namespace {

constexpr size_t kScanBuffer = size_t{4} << 20;
constexpr size_t kSampleFiles = 16;
constexpr uint64_t kSampleBytes = uint64_t{1} << 20;
// Tokens of a chunk are counted in 32 bits.
constexpr uint64_t kMaxChunkBytes = uint64_t{1} << 32;

struct ShortDigestHash {
  size_t operator()(const std::array<std::byte, 16>& digest) const {
    size_t value;
    std::memcpy(&value, digest.data(), sizeof value);
    return value;
  }
};

// Goes through the sources and cuts them into entries.
class Scan {
 public:
  Scan(const Plan& plan, ScanReport& report, const Watch& watch)
      : plan_(plan),
        report_(report),
        watch_(watch),
        next_number_(plan.entries.size()),
        documents_left_(plan.limit_documents == 0
                            ? UINT64_MAX
                            : plan.limit_documents - std::min(plan.limit_documents, plan.documents())),
        buffer_(kScanBuffer) {
    if (plan.parameters.deduplicates) seen_.insert(plan.texts_seen.begin(), plan.texts_seen.end());
    for (const auto& [number, source] : plan.sources) {
      numbers_[source.path.string()] = number;
      next_source_ = std::max(next_source_, number + 1);
    }
  }

  Result<PlanPart> run(const std::vector<InputFile>& files) {
    for (const InputFile& file : files) {
      std::error_code ignored;
      total_bytes_ += std::filesystem::file_size(file.path, ignored);
    }
    if (plan_.parameters.deduplicates) {
      LMEMO_ASSIGN(field_, FieldPath::parse(plan_.parameters.text_field));
    }
    for (const InputFile& file : files) {
      if (documents_left_ == 0) break;
      LMEMO_TRY(add_file(file));
    }
    end_range();
    end_entry();
    return std::move(part_);
  }

 private:
  Status add_file(const InputFile& file) {
    LMEMO_ASSIGN(const FileStamp stamp, stamp_of_file(file.path));
    source_ = {};
    const auto known = numbers_.find(file.path.string());
    const bool is_new = known == numbers_.end();
    if (!is_new) {
      const auto planned = plan_.sources.find(known->second);
      if (planned == plan_.sources.end()) return {};  // Given twice.
      source_ = planned->second;
      if (source_.stamp == stamp) return {};
      ++report_.changed;
      // A text is one document: what was appended to it is no document of its own.
      if (source_.type == SourceType::text) return {};
    } else {
      source_.number = next_source_++;
      source_.path = file.path;
      source_.type = file.type;
      numbers_[file.path.string()] = source_.number;
    }
    source_.stamp = stamp;
    ++report_.files;
    const uint64_t before = source_.planned_bytes;
    LMEMO_TRY(source_.type == SourceType::text ? scan_text() : scan_lines());
    if (source_.planned_bytes != before || is_new) part_.sources.push_back(source_);
    return {};
  }

  Status scan_text() {
    LMEMO_ASSIGN(const auto stream, ByteStream::open(source_.path));
    begin_range(0, 1);
    range_.first_hash = 0;
    std::string whole;  // Only for deduplication.
    while (true) {
      LMEMO_ASSIGN(const size_t count, stream->read(buffer_));
      const Bytes bytes = std::as_bytes(std::span(buffer_).first(count));
      hasher_.update(bytes);
      if (range_.end == 0) range_.first_hash = checksum(bytes);
      range_.end += count;
      if (plan_.parameters.deduplicates) whole.append(buffer_.data(), count);
      LMEMO_TRY(tell(count));
      if (count < buffer_.size()) break;
    }
    source_.planned_bytes = range_.end;
    source_.planned_lines = 1;
    note_document(whole);
    end_range();
    if (entry_bytes_ >= limit_bytes()) end_entry();
    return {};
  }

  // Whole lines are taken from the buffer; the start of one whose end was not read yet stays in it.
  Status scan_lines() {
    LMEMO_ASSIGN(const auto stream, ByteStream::open(source_.path));
    if (source_.planned_bytes > 0) {
      LMEMO_TRY(stream->seek(source_.planned_bytes - 1));
      char last = '\n';
      LMEMO_ASSIGN(const size_t count, stream->read({&last, 1}));
      if (count == 0) return {};  // Shorter than it was: nothing new.
      // A line that had no end when it was planned: what follows belongs to it, and its chunk is stale.
      skips_to_newline_ = last != '\n';
    } else {
      skips_to_newline_ = false;
    }
    uint64_t line = source_.planned_lines + 1;
    begin_range(source_.planned_bytes, line);
    std::string rest;
    bool at_end = false;
    while (!at_end && documents_left_ > 0) {
      LMEMO_ASSIGN(const size_t count, stream->read(buffer_));
      at_end = count < buffer_.size();
      LMEMO_TRY(tell(count));
      std::string_view bytes(buffer_.data(), count);
      while (!bytes.empty() && documents_left_ > 0) {
        const void* const newline = std::memchr(bytes.data(), '\n', bytes.size());
        if (newline == nullptr) {
          rest += bytes;
          break;
        }
        const size_t length = static_cast<size_t>(static_cast<const char*>(newline) - bytes.data()) + 1;
        std::string_view text = bytes.substr(0, length);
        if (!rest.empty()) text = rest += text;
        add_line(text, line++);
        rest.clear();
        bytes.remove_prefix(length);
      }
      if (documents_left_ == 0) rest.clear();
    }
    if (!rest.empty()) {
      add_line(rest, line++);
      range_.ends_in_line = true;
    }
    end_range();
    source_.planned_lines = line - 1;
    return {};
  }

  void add_line(std::string_view line, uint64_t number) {
    source_.planned_bytes += line.size();
    if (skips_to_newline_) {
      skips_to_newline_ = false;
      begin_range(source_.planned_bytes, number + 1);
      return;
    }
    hasher_.update(bytes_of(line));
    range_.end += line.size();
    entry_bytes_ += line.size();
    if (!is_blank(line)) {
      if (range_.documents == 0) range_.first_hash = checksum(bytes_of(line));
      note_document(line);
    }
    if (entry_bytes_ >= limit_bytes()) {
      end_range();
      end_entry();
      begin_range(source_.planned_bytes, number + 1);
    }
  }

  void note_document(std::string_view bytes) {
    ++range_.documents;
    ++report_.documents;
    --documents_left_;
    const auto document = static_cast<uint32_t>(entry_documents_++);
    if (!plan_.parameters.deduplicates) return;
    // Simdjson reads past the end of a line.
    padded_.assign(bytes);
    padded_.append(kRangePadding, '\0');
    for_each_document(source_.type, std::string_view(padded_).substr(0, bytes.size()), range_.begin, 1,
                      parser_, field_, [&](const Document& found) {
                        if (!found.verdict.ok() || found.text.empty()) return;
                        const auto digest = short_digest(found.text);
                        if (seen_.insert(digest).second) {
                          part_.texts_seen.push_back(digest);
                        } else {
                          entry_.duplicates.push_back(document);
                          ++report_.duplicates;
                        }
                      });
  }

  void begin_range(uint64_t begin, uint64_t line) {
    range_ = {};
    range_.source = source_.number;
    range_.begin = range_.end = begin;
    range_.first_line = line;
  }

  void end_range() {
    const Digest digest = hasher_.finish();
    if (range_.end == range_.begin && range_.documents == 0) return;
    range_.sha256 = digest;
    report_.bytes += range_.end - range_.begin;
    entry_.ranges.push_back(range_);
    if (source_.type == SourceType::text) entry_bytes_ += range_.end - range_.begin;
    range_ = {};
  }

  void end_entry() {
    if (entry_.ranges.empty()) return;
    entry_.number = next_number_++;
    part_.entries.push_back(std::move(entry_));
    entry_ = {};
    entry_bytes_ = 0;
    entry_documents_ = 0;
  }

  Status tell(uint64_t bytes) {
    done_bytes_ += bytes;
    watch_.report({"scan", done_bytes_, std::max(total_bytes_, done_bytes_), "bytes"});
    if (watch_.stopped()) return Error{ErrorCode::interrupted, "interrupted"};
    return {};
  }
  uint64_t limit_bytes() const { return std::clamp<uint64_t>(plan_.chunk_bytes, 1, kMaxChunkBytes); }

  const Plan& plan_;
  ScanReport& report_;
  const Watch& watch_;
  PlanPart part_;
  PlanSource source_;
  PlanRange range_;
  PlanEntry entry_;
  uint64_t entry_bytes_ = 0, entry_documents_ = 0;
  uint64_t next_number_;
  uint32_t next_source_ = 0;
  uint64_t documents_left_;
  bool skips_to_newline_ = false;
  uint64_t done_bytes_ = 0, total_bytes_ = 0;
  Sha256 hasher_;
  std::vector<char> buffer_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::unordered_set<std::array<std::byte, 16>, ShortDigestHash> seen_;
  JsonLineParser parser_;
  FieldPath field_;
  std::string padded_;
};

bool has_glob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

// All but what lies below `left_out`.
Status add_directory(const Path& root, const WalkOptions& options, const Path& left_out,
                     std::vector<InputFile>& files) {
  LMEMO_ASSIGN(const SourceListing listing, walk_sources(root, options));
  for (size_t at = 0; at < listing.size(); ++at) {
    const Path path = listing.root() / listing.path(at);
    if (!path.native().starts_with(left_out.native() + "/")) files.push_back({path, type_of_input(path)});
  }
  return {};
}

}  // namespace

SourceType type_of_input(const Path& path) {
  std::string name = path.filename().string();
  for (const std::string_view packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.resize(name.size() - packed.size());
  for (const std::string_view lines : {".jsonl", ".ndjson", ".json"})
    if (name.ends_with(lines)) return SourceType::json_lines;
  return SourceType::text;
}

Result<std::vector<InputFile>> find_input_files(const std::vector<std::string>& inputs,
                                                const Path& working_directory, const Path& set_directory) {
  std::vector<InputFile> files;
  std::error_code ignored;
  const Path left_out = std::filesystem::weakly_canonical(set_directory, ignored);
  for (const std::string& input : inputs) {
    const Path path = (working_directory / input).lexically_normal();
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::is_directory(status)) {
      LMEMO_TRY(add_directory(path, {}, left_out, files));
    } else if (std::filesystem::exists(status)) {
      const Path real = std::filesystem::canonical(path, error);
      files.push_back({error ? path : real, type_of_input(path)});
    } else if (has_glob(input)) {
      // The directory before the first part with a glob, and the rest as a pattern.
      Path root, pattern;
      for (const Path& piece : path) (has_glob(piece.string()) || !pattern.empty() ? pattern : root) /= piece;
      const size_t before = files.size();
      LMEMO_TRY(add_directory(root, {.include = {pattern.generic_string()}}, left_out, files));
      if (files.size() == before) return Error{ErrorCode::invalid_argument, "no file matches " + input};
    } else {
      return Error{ErrorCode::invalid_argument,
                   "there is no " + path.string() + "; expected a file, a directory or a glob"};
    }
  }
  return files;
}

Result<Sample> sample_inputs(const std::vector<InputFile>& files, const ChunkParameters& parameters,
                             const Tokenizer& tokenizer) {
  Sample sample;
  LMEMO_ASSIGN(const FieldPath field, FieldPath::parse(parameters.text_field));
  const size_t count = std::min(files.size(), kSampleFiles);
  RangeReader reader;
  JsonLineParser parser;
  EncodeOptions options;
  options.add_special_tokens = false;
  options.truncation = TruncationOptions{};
  options.padding = PaddingOptions{.length = 0};
  for (size_t at = 0; at < count; ++at) {
    const InputFile& file = files[at * files.size() / count];
    std::string bytes;
    LMEMO_TRY(reader.read(file.path, 0, kSampleBytes / count, kRangePadding, bytes));
    std::string_view view(bytes.data(), bytes.size() - kRangePadding);
    if (file.type == SourceType::json_lines && view.size() == kSampleBytes / count) {
      const size_t last = view.rfind('\n');
      view = view.substr(0, last == std::string_view::npos ? 0 : last + 1);
    } else if (file.type == SourceType::text) {
      // Cut between characters.
      while (!view.empty() && (static_cast<unsigned char>(view.back()) & 0x80) != 0) view.remove_suffix(1);
    }
    uint64_t tokens = 0, documents = 0;
    Status status;
    for_each_document(file.type, view, 0, 1, parser, field, [&](const Document& document) {
      if (!status.ok() || !document.verdict.ok() || document.text.empty()) return;
      auto ids = tokenizer.encode(document.text, options);
      if (!ids.ok()) {
        status = ids.error();
        return;
      }
      tokens += ids->size() + parameters.bos.has_value() + parameters.eos.has_value();
      ++documents;
    });
    LMEMO_TRY(status);
    if (tokens == 0) continue;
    sample.bytes += view.size();
    sample.tokens += tokens;
    sample.documents += documents;
    sample.bytes_per_token.push_back(static_cast<double>(view.size()) / static_cast<double>(tokens));
  }
  return sample;
}

Result<PlanPart> scan(const Plan& plan, const std::vector<InputFile>& files, ScanReport& report,
                      const Watch& watch) {
  return Scan(plan, report, watch).run(files);
}

}  // namespace lmemo::chunks
