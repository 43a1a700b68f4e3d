#include "lmemo/inspect.h"

#include "store/record_scan.h"
#include "store/segment.h"

namespace lmemo {
namespace {

void add_blocks(const Segment& segment, InspectedFile& file) {
  const auto problem_of = [&](std::string_view block) -> std::string {
    for (const Segment::Problem& problem : segment.problems())
      if (problem.block == block) return problem.what;
    return {};
  };
  const auto add = [&](std::string name, uint64_t offset, uint64_t byte_count, std::string note) {
    const bool is_sound = note.empty();
    file.blocks.push_back({std::move(name), offset, byte_count, is_sound, std::move(note)});
  };
  add("header", 0, std::min<uint64_t>(sizeof(SegmentHeader), segment.file_bytes()), problem_of("header"));
  const uint64_t records_end = segment.records().size();
  const uint64_t records_start = std::min<uint64_t>(sizeof(SegmentHeader), records_end);
  add("records", records_start, records_end - records_start, {});
  if (const auto& footer = segment.footer()) {
    add("index", footer->index_offset, footer->fields_offset - footer->index_offset, problem_of("index"));
    const bool has_fields = segment.state() != SegmentState::sealed || segment.fields().has_value();
    add("fields", footer->fields_offset, footer->kinds_offset - footer->fields_offset,
        has_fields ? "" : "does not match its checksum");
    add("kinds", footer->kinds_offset, footer->footer_offset - footer->kinds_offset, {});
    add("footer", footer->footer_offset, sizeof(SegmentFooter), {});
  } else {
    add("footer", segment.file_bytes(), 0, problem_of("footer"));
  }
}

}  // namespace

Result<InspectedFile> inspect_file(const std::filesystem::path& path) {
  LMEMO_ASSIGN(const std::shared_ptr<const MappedFile> mapping, real_file_system().map(path));
  if (!mapping) return Error{ErrorCode::io_error, "no file " + path.string()};
  Result<std::shared_ptr<Segment>> opened = Segment::read(mapping, path.filename().string());
  if (!opened.ok()) {
    if (opened.error().code != ErrorCode::corruption) return opened.error();
    return Error{ErrorCode::incompatible,
                 path.string() + " is nothing that lmemo writes: " + opened.error().message};
  }
  const Segment& segment = **opened;

  InspectedFile file;
  file.file_bytes = segment.file_bytes();
  file.version = kFormatVersion;
  file.nonce = segment.nonce();
  file.is_sealed = segment.state() == SegmentState::sealed;
  add_blocks(segment, file);
  const RecordScan scan =
      scan_records(segment.records(), segment.nonce(), [&](uint64_t offset, const RecordView& record) {
        InspectedRecord shown;
        shown.offset = offset;
        shown.stored_bytes = record.byte_count;
        shown.value_bytes = record.header.value_bytes;
        shown.value_offset = offset + value_offset_in_record(record.header.encoding_bytes);
        shown.written_ns = record.header.written_ns;
        shown.is_erasure = record.header.type == RecordType::erasure;
        shown.digest = record.header.digest;
        if (Result<Key> key = Key::from_encoding(bytes_of(record.encoding)); key.ok())
          shown.key = std::move(*key);
        file.records.push_back(std::move(shown));
      });
  for (InspectedBlock& block : file.blocks)
    if (block.name == "records" && !scan.bad.empty()) {
      block.is_sound = false;
      block.note = std::to_string(scan.bad.size()) + " damaged places";
    }
  for (const Segment::Problem& problem : segment.problems())
    file.problems.push_back(problem.block + ": " + problem.what);
  for (const BadRange& bad : scan.bad)
    file.problems.push_back("records: " + std::to_string(bad.byte_count) + " bytes from byte " +
                            std::to_string(bad.offset) + " are no sound record");
  return file;
}

}  // namespace lmemo
