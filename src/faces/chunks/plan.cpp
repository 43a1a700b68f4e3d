#include "faces/chunks/plan.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "base/byte_reader.h"
#include "base/sha256.h"
#include "store/segment.h"

namespace lmemo::chunks {
namespace {

constexpr std::string_view kPlanKind = "plan";
constexpr std::string_view kSourcesKind = "plan.sources";
constexpr std::string_view kEntriesKind = "plan.entries";
constexpr std::string_view kTextsKind = "plan.texts";
constexpr uint32_t kPlanVersion = 1;

Error damaged(const std::string& what) {
  return {
      ErrorCode::corruption,
      "the plan: " + what + "; move DIR/plan away and run the same build again: finished chunks are kept"};
}

std::string encode_head(const Plan& plan) {
  std::string value;
  append_le(value, kPlanVersion);
  append_text(value, plan.parameters.tokenizer_name);
  append_text(value, plan.tokenizer_path);
  append_le(value, plan.chunk_sequences);
  append_le(value, plan.chunk_bytes);
  append_le(value, plan.limit_documents);
  append_le(value, static_cast<uint32_t>(plan.inputs.size()));
  for (const std::string& input : plan.inputs) append_text(value, input);
  return value;
}

Status decode_head(Bytes value, Plan& plan) {
  ByteReader reader(value);
  if (const auto version = reader.read<uint32_t>(); version != kPlanVersion)
    return Error{ErrorCode::incompatible, "a plan of version " + std::to_string(version) +
                                              "; this lmemo reads version " + std::to_string(kPlanVersion)};
  plan.parameters.tokenizer_name = reader.text();
  plan.tokenizer_path = reader.text();
  plan.chunk_sequences = reader.read<uint64_t>();
  plan.chunk_bytes = reader.read<uint64_t>();
  plan.limit_documents = reader.read<uint64_t>();
  plan.inputs.clear();
  for (auto count = reader.read<uint32_t>(); count > 0 && reader.ok(); --count)
    plan.inputs.emplace_back(reader.text());
  if (!reader.is_at_end()) return damaged("its head is damaged");
  return {};
}

std::string name_of_part(uint32_t part) {
  char name[32];
  std::snprintf(name, sizeof name, "%06u.plan", part);
  return name;
}

Result<PlanPart> read_part(const Path& path, Plan& plan) {
  const auto opened = Segment::open(real_file_system(), path);
  if (!opened.ok())
    return opened.error().code == ErrorCode::corruption
               ? damaged(path.string() + ": " + opened.error().message)
               : opened.error();
  const auto& segment = *opened;
  if (!segment) return damaged("there is no " + path.string());
  if (segment->state() != SegmentState::sealed) return damaged(path.string() + " is damaged or cut off");
  PlanPart part;
  bool has_head = false;
  for (uint32_t ordinal = 0; ordinal < segment->entries().size(); ++ordinal) {
    const std::optional<RecordView> record = segment->checked_record(ordinal);
    if (!record) return damaged(path.string() + ": a record has a wrong checksum");
    const std::string_view kind = segment->kind_name(segment->entry(ordinal).kind);
    if (kind == kPlanKind) {
      LMEMO_ASSIGN(const Key key, Key::from_encoding(bytes_of(record->encoding)));
      LMEMO_ASSIGN(plan.parameters, parameters_of(key));
      LMEMO_TRY(decode_head(record->value, plan));
      has_head = true;
    } else if (kind == kSourcesKind) {
      LMEMO_ASSIGN(part.sources, decode_sources(record->value));
    } else if (kind == kEntriesKind) {
      LMEMO_ASSIGN(part.entries, decode_entries(record->value));
    } else if (kind == kTextsKind) {
      if (record->value.size() % 16 != 0) return damaged("its texts are damaged");
      part.texts_seen.resize(record->value.size() / 16);
      if (!part.texts_seen.empty())
        std::memcpy(part.texts_seen.data(), record->value.data(), record->value.size());
    }
  }
  if (!has_head) return damaged(path.string() + " is no plan");
  uint64_t next = plan.entries.size();
  for (const PlanEntry& entry : part.entries)
    if (entry.number >= next && entry.number != next++) return damaged("a gap in its entries");
  return part;
}

}  // namespace

void apply(Plan& plan, PlanPart& part) {
  for (PlanSource& source : part.sources) plan.sources[source.number] = std::move(source);
  for (PlanEntry& entry : part.entries) {
    if (entry.number < plan.entries.size())
      plan.entries[entry.number] = std::move(entry);
    else
      plan.entries.push_back(std::move(entry));
  }
  plan.texts_seen.insert(plan.texts_seen.end(), part.texts_seen.begin(), part.texts_seen.end());
}

uint64_t PlanEntry::documents() const {
  uint64_t total = 0;
  for (const PlanRange& range : ranges) total += range.documents;
  return total;
}

uint64_t PlanEntry::bytes() const {
  uint64_t total = 0;
  for (const PlanRange& range : ranges) total += range.end - range.begin;
  return total;
}

// Which documents are duplicates depends on other chunks, so it belongs to the content of this one.
std::vector<RangeContent> PlanEntry::contents() const {
  std::vector<RangeContent> contents;
  contents.reserve(ranges.size() + 1);
  for (const PlanRange& range : ranges)
    contents.push_back({range.source, range.end - range.begin, range.documents, range.sha256});
  if (!duplicates.empty())
    contents.push_back({UINT32_MAX, 0, duplicates.size(), sha256(std::as_bytes(std::span(duplicates)))});
  return contents;
}

uint64_t Plan::documents() const {
  uint64_t total = 0;
  for (const PlanEntry& entry : entries) total += entry.documents();
  return total;
}

std::string encode_sources(const std::vector<PlanSource>& sources) {
  std::string value;
  append_le(value, static_cast<uint32_t>(sources.size()));
  for (const PlanSource& source : sources) {
    append_le(value, source.number);
    append_le(value, source.type);
    append_text(value, source.path.string());
    append_le(value, source.stamp.byte_count);
    append_le(value, source.stamp.modified_ns);
    append_le(value, source.stamp.changed_ns);
    append_le(value, source.stamp.inode);
    append_le(value, source.planned_bytes);
    append_le(value, source.planned_lines);
  }
  return value;
}

Result<std::vector<PlanSource>> decode_sources(Bytes value) {
  ByteReader reader(value);
  std::vector<PlanSource> sources;
  for (auto count = reader.read<uint32_t>(); count > 0 && reader.ok(); --count) {
    PlanSource& source = sources.emplace_back();
    source.number = reader.read<uint32_t>();
    source.type = reader.read<SourceType>();
    source.path = std::string(reader.text());
    source.stamp.byte_count = reader.read<uint64_t>();
    source.stamp.modified_ns = reader.read<int64_t>();
    source.stamp.changed_ns = reader.read<int64_t>();
    source.stamp.inode = reader.read<uint64_t>();
    source.planned_bytes = reader.read<uint64_t>();
    source.planned_lines = reader.read<uint64_t>();
    if (source.type > SourceType::text) return damaged("a source of no known type");
  }
  if (!reader.is_at_end()) return damaged("its sources are damaged");
  return sources;
}

std::string encode_entries(const std::vector<PlanEntry>& entries) {
  std::string value;
  append_le(value, static_cast<uint64_t>(entries.size()));
  for (const PlanEntry& entry : entries) {
    append_le(value, entry.number);
    append_le(value, static_cast<uint32_t>(entry.ranges.size()));
    append_le(value, static_cast<uint32_t>(entry.duplicates.size()));
    for (const PlanRange& range : entry.ranges) {
      append_le(value, range.source);
      append_le(value, range.begin);
      append_le(value, range.end);
      append_le(value, range.first_line);
      append_le(value, range.documents);
      append_le(value, range.first_hash);
      append_le(value, static_cast<uint8_t>(range.ends_in_line));
      value += text_of(range.sha256.bytes);
    }
    for (const uint32_t duplicate : entry.duplicates) append_le(value, duplicate);
  }
  return value;
}

Result<std::vector<PlanEntry>> decode_entries(Bytes value) {
  ByteReader reader(value);
  std::vector<PlanEntry> entries;
  for (auto count = reader.read<uint64_t>(); count > 0 && reader.ok(); --count) {
    PlanEntry& entry = entries.emplace_back();
    entry.number = reader.read<uint64_t>();
    auto ranges = reader.read<uint32_t>(), duplicates = reader.read<uint32_t>();
    for (; ranges > 0 && reader.ok(); --ranges) {
      PlanRange& range = entry.ranges.emplace_back();
      range.source = reader.read<uint32_t>();
      range.begin = reader.read<uint64_t>();
      range.end = reader.read<uint64_t>();
      range.first_line = reader.read<uint64_t>();
      range.documents = reader.read<uint64_t>();
      range.first_hash = reader.read<uint64_t>();
      range.ends_in_line = reader.read<uint8_t>() != 0;
      range.sha256 = reader.read<Digest>();
      if (range.end < range.begin) return damaged("a range that ends before it begins");
    }
    for (; duplicates > 0 && reader.ok(); --duplicates) entry.duplicates.push_back(reader.read<uint32_t>());
  }
  if (!reader.is_at_end()) return damaged("its entries are damaged");
  return entries;
}

Result<std::optional<Plan>> load_plan(const Path& directory) {
  FileSystem& files = real_file_system();
  LMEMO_ASSIGN(const FileStatus status, files.status(directory / "plan"));
  if (status.type != FileType::directory) return std::optional<Plan>();
  LMEMO_ASSIGN(const std::vector<std::string> names, files.list(directory / "plan"));
  const auto count = static_cast<uint32_t>(std::count_if(
      names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".plan"); }));
  if (count == 0) return std::optional<Plan>();
  Plan plan;
  for (uint32_t number = 0; number < count; ++number) {
    LMEMO_ASSIGN(PlanPart part, read_part(directory / "plan" / name_of_part(number), plan));
    apply(plan, part);
  }
  plan.parts = count;
  for (const PlanEntry& entry : plan.entries)
    for (const PlanRange& range : entry.ranges)
      if (!plan.sources.contains(range.source)) return damaged("a range of a source that it does not name");
  return std::optional(std::move(plan));
}

Status append_to_plan(const Path& directory, Plan& plan, PlanPart part) {
  FileSystem& files = real_file_system();
  LMEMO_TRY(files.make_directory(directory / "plan"));
  LMEMO_TRY(files.make_directory(directory / "writing"));
  const std::string name = name_of_part(plan.parts);
  const Path temporary = directory / "writing" / (name + "." + std::to_string(::getpid()));
  LMEMO_TRY(files.remove(temporary));

  LMEMO_ASSIGN(const Key head_key, Key::of(kPlanKind, parameter_fields(plan.parameters)));
  LMEMO_ASSIGN(const Key sources_key, Key::of(kSourcesKind, {}));
  LMEMO_ASSIGN(const Key entries_key, Key::of(kEntriesKind, {}));
  LMEMO_ASSIGN(const Key texts_key, Key::of(kTextsKind, {}));
  const std::string head = encode_head(plan), sources = encode_sources(part.sources),
                    entries = encode_entries(part.entries);
  const Bytes texts = std::as_bytes(std::span(part.texts_seen));
  const std::array records = {
      NewRecord{RecordType::value, head_key.digest(), text_of(head_key.encoding()), bytes_of(head), 0, 0},
      NewRecord{RecordType::value, sources_key.digest(), text_of(sources_key.encoding()), bytes_of(sources),
                0, 0},
      NewRecord{RecordType::value, entries_key.digest(), text_of(entries_key.encoding()), bytes_of(entries),
                0, 0},
      NewRecord{RecordType::value, texts_key.digest(), text_of(texts_key.encoding()), texts, 0, 0}};
  const uint64_t capacity = head.size() + sources.size() + entries.size() + texts.size() + 4096;
  LMEMO_ASSIGN(const auto writer, SegmentWriter::create(files, temporary, plan.parts + 1, 0, capacity));
  LMEMO_TRY(writer->append(std::span(records).first(texts.empty() ? 3 : 4)));
  LMEMO_TRY(writer->seal());
  LMEMO_TRY(files.rename(temporary, directory / "plan" / name));
  LMEMO_TRY(files.sync_directory(directory / "plan"));
  apply(plan, part);
  ++plan.parts;
  return {};
}

}  // namespace lmemo::chunks
