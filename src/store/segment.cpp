// Opening a segment checks everything that finding relies on: header, footer, block bounds, index. A record is
// checked when it is found. If the ends or the index are damaged, the sound records are found by a scan instead: slower to
// open, nothing lost.
#include "store/segment.h"

#include <unordered_map>

#include "base/hex.h"
#include "codec/checksum.h"
#include "store/index_entries.h"
#include "store/kinds_block.h"
#include "store/record_scan.h"

namespace lmemo {
namespace {

template <typename T>
bool has_sound_checksum(const T& value) {
  return checksum(std::as_bytes(std::span(&value, 1)).first(sizeof(T) - sizeof(uint64_t))) == value.checksum;
}

Error corruption(std::string message) { return {ErrorCode::corruption, std::move(message)}; }

}  // namespace

Result<std::shared_ptr<Segment>> Segment::open(FileSystem& files, const Path& path) {
  LMEMO_ASSIGN(std::shared_ptr<const MappedFile> mapping, files.map(path));
  if (!mapping) return std::shared_ptr<Segment>();
  return read(std::move(mapping), path.filename().string());
}

Result<std::shared_ptr<Segment>> Segment::read(std::shared_ptr<const MappedFile> mapping, std::string name) {
  std::shared_ptr<Segment> segment(new Segment);
  segment->name_ = std::move(name);
  segment->mapping_ = std::move(mapping);
  segment->file_bytes_ = segment->mapping_->bytes().size();
  if (Status ends = segment->read_ends(); !ends.ok()) {
    if (ends.error().code == ErrorCode::incompatible) return ends.error();
    if (segment->nonce_ == 0) return ends.error();  // Neither end is ours.
    segment->problems_.push_back({"footer", segment->file_bytes_, ends.error().message});
    segment->scan_for_entries();
  } else if (Status index = segment->read_index(); !index.ok()) {
    segment->problems_.push_back({"index", segment->footer_->index_offset, index.error().message});
    segment->scan_for_entries();
  }
  segment->make_marks(segment->entry_count_, segment->kinds_.size());
  return segment;
}

std::shared_ptr<Segment> Segment::pending(std::shared_ptr<SegmentWriter> writer) {
  std::shared_ptr<Segment> segment(new Segment);
  segment->name_ = writer->path().filename().string();
  segment->state_ = SegmentState::pending;
  segment->nonce_ = writer->nonce();
  segment->mapping_ = writer->mapping();
  segment->records_ = segment->mapping_->bytes();
  segment->entries_ = writer->entries();
  segment->writer_ = std::move(writer);
  segment->make_marks(kMaxEntriesPerSegment, SegmentWriter::kMaxKinds);
  return segment;
}

Status Segment::read_ends() {
  const Bytes file = mapping_->bytes();
  std::optional<SegmentHeader> header;
  if (file.size() >= sizeof(SegmentHeader)) {
    const auto found = load_le<SegmentHeader>(file.data());
    if (found.magic == kSegmentMagic && has_sound_checksum(found)) header = found;
  }
  if (header && header->version != kFormatVersion)
    return Error{ErrorCode::incompatible, name_ + ": format version " + std::to_string(header->version) +
                                              ", this lmemo reads version " + std::to_string(kFormatVersion) +
                                              "; update lmemo or use another store"};
  if (file.size() >= sizeof(SegmentHeader) + sizeof(SegmentFooter)) {
    const auto found = load_le<SegmentFooter>(file.data() + file.size() - sizeof(SegmentFooter));
    if (found.magic == kFooterMagic && has_sound_checksum(found) && found.version == kFormatVersion)
      footer_ = found;
  }
  if (!header) problems_.push_back({"header", 0, "header is damaged or cut off"});
  if (header) nonce_ = header->nonce;
  if (!header && footer_) nonce_ = footer_->nonce;
  records_ = file;
  if (!footer_)
    return corruption(header ? "footer is damaged or cut off" : "neither header nor footer is lmemo's");
  if (footer_->nonce != nonce_) {
    footer_.reset();
    return corruption("footer belongs to another segment");
  }

  // Blocks follow one another without a gap, so every later offset is inside the file.
  const SegmentFooter& f = *footer_;
  const bool is_laid_out = f.index_offset >= sizeof(SegmentHeader) && f.index_offset % 8 == 0 &&
                           f.footer_offset == file.size() - sizeof(SegmentFooter) &&
                           f.index_offset <= f.fields_offset && f.fields_offset <= f.kinds_offset &&
                           f.kinds_offset <= f.footer_offset && f.entry_count <= kMaxEntriesPerSegment &&
                           f.fields_offset - f.index_offset == f.entry_count * sizeof(IndexEntry);
  if (!is_laid_out) {
    footer_.reset();
    return corruption("footer names blocks that do not fit the file");
  }
  records_ = file.first(f.index_offset);
  return {};
}

Status Segment::read_index() {
  const Bytes file = mapping_->bytes();
  const SegmentFooter& f = *footer_;
  const auto block = [&](uint64_t from, uint64_t to) { return file.subspan(from, to - from); };

  const Bytes index = block(f.index_offset, f.fields_offset);
  if (checksum(index, nonce_) != f.index_checksum) return corruption("index checksum does not match");
  const Bytes kinds = block(f.kinds_offset, f.footer_offset);
  std::optional<std::vector<std::string>> names;
  if (checksum(kinds, nonce_) == f.kinds_checksum) names = parse_kinds_block(kinds);
  if (!names) return corruption("kinds block does not match its checksum");

  entries_ = reinterpret_cast<const IndexEntry*>(index.data());
  entry_count_ = f.entry_count;
  // A sound checksum says that these are the bytes somebody wrote, not that they mean well.
  uint64_t room = f.index_offset - sizeof(SegmentHeader);
  for (size_t i = 0; i < entry_count_; ++i) {
    const IndexEntry& entry = entries_[i];
    const bool is_in_order = i == 0 || entries_[i - 1].digest < entry.digest;
    const bool is_inside = entry.offset % 8 == 0 && entry.offset >= sizeof(SegmentHeader) &&
                           entry.offset < f.index_offset && entry.value_bytes <= kMaxValueBytes &&
                           record_bytes(entry) <= f.index_offset - entry.offset;
    const bool has_kind = entry.kind == kErasureKind || entry.kind < names->size();
    // Records that lie inside one another would be many times the file when copied.
    const bool has_room = is_inside && record_bytes(entry) <= room;
    if (has_room) room -= record_bytes(entry);
    if (!is_in_order || !has_room || !has_kind) {
      entries_ = nullptr;
      entry_count_ = 0;
      return corruption("index entry " + std::to_string(i) +
                        " is out of order, points outside or lies in another");
    }
  }
  kinds_ = std::move(*names);
  return {};
}

const std::optional<FieldsBlock>& Segment::fields() const {
  std::call_once(fields_are_read_, [this] {
    if (state_ != SegmentState::sealed) return;
    const SegmentFooter& f = *footer_;
    const Bytes block = mapping_->bytes().subspan(f.fields_offset, f.kinds_offset - f.fields_offset);
    if (checksum(block, nonce_) == f.fields_checksum) fields_ = FieldsBlock::parse(block, f.entry_count);
  });
  return fields_;
}

void Segment::scan_for_entries() {
  state_ = SegmentState::scanned;
  kinds_.clear();
  std::unordered_map<std::string_view, uint16_t> numbers;
  scan_records(records_, nonce_, [&](uint64_t offset, const RecordView& record) {
    uint16_t kind = kErasureKind;
    if (record.header.type == RecordType::value) {
      const std::string_view name = kind_of_encoding(record.encoding);
      if (name.empty() || name.size() > kMaxKindBytes) return;
      const auto [found, is_new] = numbers.try_emplace(name, static_cast<uint16_t>(kinds_.size()));
      kind = found->second;
      if (kind == kErasureKind) return;  // More kinds than there are numbers for: nobody means that.
      if (is_new) kinds_.emplace_back(found->first);
    }
    scanned_entries_.push_back({record.header.digest, offset, record.header.written_ns,
                                record.header.value_bytes, 0, record.header.encoding_bytes, kind});
  });
  sort_and_keep_newest(scanned_entries_);
  if (scanned_entries_.size() > kMaxEntriesPerSegment) scanned_entries_.resize(kMaxEntriesPerSegment);
  entries_ = scanned_entries_.data();
  entry_count_ = scanned_entries_.size();
}

void Segment::make_marks(size_t entry_count, size_t kind_count) {
  // Zeros that the kernel gives: a batch has room for more entries than it mostly gets, and those pages stay untouched.
  marks_.reset(static_cast<std::atomic<uint8_t>*>(std::calloc(std::max<size_t>(entry_count, 1), 1)));
  if (!marks_) throw std::bad_alloc();
  hits_ = std::make_unique<std::atomic<uint64_t>[]>(kind_count);
}

void Segment::forget_checks() {
  for (size_t ordinal = 0; ordinal < entry_count_; ++ordinal)
    marks_[ordinal].fetch_and(static_cast<uint8_t>(~kChecked), std::memory_order_relaxed);
}

std::span<const IndexEntry> Segment::entries() const {
  return {entries_, writer_ ? writer_->entry_count() : entry_count_};
}

std::optional<RecordView> Segment::checked_record(uint32_t ordinal) const {
  const IndexEntry& entry = entries_[ordinal];
  std::optional<RecordView> record = read_record(records_, nonce_, entry.offset);
  if (!record || !matches(entry, *record)) return std::nullopt;
  return record;
}

Bytes Segment::unchecked_value(uint32_t ordinal) const {
  const IndexEntry& entry = entries_[ordinal];
  return records_.subspan(entry.offset + value_offset_in_record(entry.encoding_bytes), entry.value_bytes);
}

Result<std::string> Segment::encoding_of(uint32_t ordinal) const {
  const IndexEntry& entry = entries_[ordinal];
  if (entry.kind == kErasureKind) return corruption(name_ + ": an erasure has no key fields");
  if (fields()) {
    std::string encoding = fields()->encoding_of(ordinal, kind_name(entry.kind));
    if (encoding.size() == entry.encoding_bytes) return encoding;
  }
  const std::optional<RecordView> record = checked_record(ordinal);
  if (!record)
    return corruption(name_ + ", record at byte " + std::to_string(entry.offset) + ": " +
                      describe_bad_record(records_, nonce_, entry.offset));
  return std::string(record->encoding);
}

}  // namespace lmemo
