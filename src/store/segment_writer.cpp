#include "store/segment_writer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/checksum.h"
#include "store/fields_block.h"
#include "store/index_entries.h"
#include "store/kinds_block.h"
#include "store/record_scan.h"

namespace lmemo {
namespace {

constexpr std::array<std::byte, 8> kZeros{};

// Started early, the disk works while records are still being made, and seal() waits for less (bench/store).
constexpr uint64_t kWritebackBytes = uint64_t{4} << 20;

// More than any writer of ours begins; a made-up file could have one for every record.
constexpr size_t kMaxKindsToResume = 4 * SegmentWriter::kMaxKinds;

// Small values are copied beside their headers, so that one write takes many; larger ones are written from where they are.
constexpr uint64_t kMaxCopiedBytes = 2048;
constexpr size_t kMaxKeptCopyBytes = 1 << 20;
bool is_copied(const NewRecord& record) { return record.value.size() <= kMaxCopiedBytes; }

Bytes padding_after(uint64_t byte_count) { return Bytes(kZeros).first(padded(byte_count) - byte_count); }

// What we publish in a dead writer's stead must be what it says it is.
bool has_its_key(const RecordView& record) {
  if (record.header.type == RecordType::erasure) return true;
  const Result<Key> key = Key::from_encoding(bytes_of(record.encoding));
  return key.ok() && key->digest() == record.header.digest;
}

template <typename T>
Bytes bytes_of_struct(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// The checksum field comes last in headers and footers.
template <typename T>
void finish_struct(T& value) {
  value.checksum = checksum(bytes_of_struct(value).first(sizeof(T) - sizeof(uint64_t)));
}

}  // namespace

SegmentWriter::SegmentWriter(std::unique_ptr<WritableFile> file, Path path, uint64_t nonce,
                             int64_t created_ns)
    : file_(std::move(file)),
      path_(std::move(path)),
      nonce_(nonce),
      created_ns_(created_ns),
      // Left uninitialised: pages that no entry reaches are never touched.
      entries_(static_cast<IndexEntry*>(std::malloc(kMaxEntriesPerSegment * sizeof(IndexEntry)))) {}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::create(FileSystem& files, const Path& path,
                                                             uint64_t nonce, int64_t created_ns,
                                                             uint64_t capacity) {
  LMEMO_ASSIGN(std::unique_ptr<WritableFile> file, files.create(path));
  std::unique_ptr<SegmentWriter> writer(new SegmentWriter(std::move(file), path, nonce, created_ns));
  SegmentHeader header;
  header.nonce = nonce;
  header.created_ns = created_ns;
  finish_struct(header);
  const Bytes part = bytes_of_struct(header);
  Status status = writer->file_->append({&part, 1});
  if (status.ok()) {
    auto mapping = writer->file_->map(sizeof header + capacity);
    if (mapping.ok()) {
      writer->mapping_ = std::move(mapping).value();
      writer->byte_count_ = sizeof header;
      return writer;
    }
    status = mapping.error();
  }
  writer.reset();
  // The first error is the one to tell; a file that could not be removed is found by the next open.
  [[maybe_unused]] const Status removed = files.remove(path);
  return status.error();
}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::resume(std::unique_ptr<WritableFile>& file,
                                                             const Path& path, Bytes bytes) {
  if (bytes.size() < sizeof(SegmentHeader)) return std::unique_ptr<SegmentWriter>();
  auto header = load_le<SegmentHeader>(bytes.data());
  const uint64_t expected = header.checksum;
  finish_struct(header);
  if (header.magic != kSegmentMagic || header.checksum != expected || header.version != kFormatVersion)
    return std::unique_ptr<SegmentWriter>();

  std::unique_ptr<SegmentWriter> writer(
      new SegmentWriter(std::move(file), path, header.nonce, header.created_ns));
  writer->byte_count_ = sizeof header;
  // Stop at the first bad record: what follows a torn write was never acknowledged.
  uint64_t offset = sizeof header;
  while (writer->entry_count_ < kMaxEntriesPerSegment && writer->kinds_.size() < kMaxKindsToResume) {
    const std::optional<RecordView> record = read_record(bytes, header.nonce, offset);
    if (!record || !has_its_key(*record)) break;
    writer->add_entry({record->header.type, record->header.digest, record->encoding, record->value,
                       record->header.written_ns, 0},
                      offset);
    offset += record->byte_count;
    writer->byte_count_ = offset;
  }
  LMEMO_TRY(writer->file_->truncate(writer->byte_count_));
  LMEMO_ASSIGN(writer->mapping_, writer->file_->map(writer->byte_count_));
  return writer;
}

bool SegmentWriter::has_room_for(uint64_t bytes_of_records) const {
  return entry_count_ < kMaxEntriesPerSegment && kinds_.size() + 64 < kMaxKinds &&
         bytes_of_records <= mapping_->bytes().size() - byte_count_;
}

void SegmentWriter::add_entry(const NewRecord& record, uint64_t offset) {
  const uint16_t kind =
      record.type == RecordType::erasure
          ? kErasureKind
          : number_of_kind(kinds_, record.encoding.substr(1, static_cast<uint8_t>(record.encoding[0])));
  entries_[entry_count_] = {record.digest,
                            offset,
                            record.written_ns,
                            record.value.size(),
                            record.accessed_minutes,
                            static_cast<uint16_t>(record.encoding.size()),
                            kind};
  ++entry_count_;
  encoding_bytes_ += record.encoding.size();
}

Status SegmentWriter::append(std::span<const NewRecord> records) {
  if (is_broken_) {
    LMEMO_TRY(file_->truncate(byte_count_));
    is_broken_ = false;
  }
  uint64_t copied_bytes = 0;
  for (const NewRecord& record : records)
    copied_bytes += value_offset_in_record(static_cast<uint16_t>(record.encoding.size())) +
                    (is_copied(record) ? padded(record.value.size()) : 0);
  // Zeros, so that padding needs no thought. Given back after an unusual batch.
  if (copied_.size() > kMaxKeptCopyBytes) copied_ = {};
  copied_.assign(copied_bytes, std::byte{0});
  std::byte* to = copied_.data();
  std::vector<Bytes> parts;
  const auto add_part = [&](Bytes part) {
    // What was copied lies side by side: one part, however many records.
    if (!parts.empty() && parts.back().data() + parts.back().size() == part.data())
      parts.back() = {parts.back().data(), parts.back().size() + part.size()};
    else if (!part.empty())
      parts.push_back(part);
  };
  uint64_t end = byte_count_;
  for (const NewRecord& record : records) {
    RecordHeader header;
    header.encoding_bytes = static_cast<uint16_t>(record.encoding.size());
    header.type = record.type;
    header.value_bytes = record.value.size();
    header.written_ns = record.written_ns;
    header.digest = record.digest;
    std::byte* const start = to;
    std::memcpy(start, &header, sizeof header);
    if (!record.encoding.empty())  // An erasure has none.
      std::memcpy(start + sizeof header, record.encoding.data(), record.encoding.size());
    to += value_offset_in_record(header.encoding_bytes);
    const uint64_t seed = record_seed(nonce_, end);
    if (is_copied(record)) {
      if (!record.value.empty()) std::memcpy(to, record.value.data(), record.value.size());
      to += padded(record.value.size());
      header.checksum = checksum(Bytes(start, to).subspan(sizeof header.checksum), seed);
      add_part({start, to});
    } else {
      const Bytes front(start, to), after_value = padding_after(record.value.size());
      header.checksum = checksum({front.subspan(sizeof header.checksum), record.value, after_value}, seed);
      add_part(front);
      add_part(record.value);
      add_part(after_value);
    }
    std::memcpy(start, &header.checksum, sizeof header.checksum);
    end += record_bytes(header.encoding_bytes, header.value_bytes);
  }

  if (Status written = file_->append(parts); !written.ok()) {
    // Half a record may stand at the end now; without it the file is as it was.
    if (!file_->truncate(byte_count_).ok()) is_broken_ = true;
    return written;
  }
  uint64_t offset = byte_count_;
  for (const NewRecord& record : records) {
    add_entry(record, offset);
    offset += record_bytes(static_cast<uint16_t>(record.encoding.size()), record.value.size());
  }
  byte_count_ = end;
  if (byte_count_ - writeback_from_ >= kWritebackBytes) {
    file_->start_writeback(writeback_from_, byte_count_ - writeback_from_);
    writeback_from_ = byte_count_;
  }
  return {};
}

uint64_t SegmentWriter::projected_bytes() const {
  // Fields are shared between entries, so this is an upper bound but for their offsets.
  return byte_count_ + entry_count_ * (sizeof(IndexEntry) + 32) + encoding_bytes_ + sizeof(SegmentFooter) +
         128;
}

std::vector<IndexEntry> SegmentWriter::sorted_entries() const {
  std::vector<IndexEntry> sorted(entries_.get(), entries_.get() + entry_count_);
  sort_and_keep_newest(sorted);
  return sorted;
}

Status SegmentWriter::seal() {
  if (is_sealed_) return {};
  if (is_broken_) {
    LMEMO_TRY(file_->truncate(byte_count_));
    is_broken_ = false;
  }
  const std::vector<IndexEntry> index = sorted_entries();
  const Bytes file_bytes = mapping_->bytes();
  const std::string fields = build_fields_block(index.size(), [&](size_t ordinal) {
    const IndexEntry& entry = index[ordinal];
    return text_of(file_bytes.subspan(entry.offset + sizeof(RecordHeader), entry.encoding_bytes));
  });
  const std::string kinds = build_kinds_block(kinds_);
  const Bytes index_bytes = std::as_bytes(std::span(index));

  SegmentFooter footer;
  footer.nonce = nonce_;
  footer.entry_count = index.size();
  footer.index_offset = byte_count_;
  footer.fields_offset = footer.index_offset + index_bytes.size();
  footer.kinds_offset = footer.fields_offset + fields.size();
  footer.footer_offset = footer.kinds_offset + kinds.size();
  footer.index_checksum = checksum(index_bytes, nonce_);
  footer.fields_checksum = checksum(bytes_of(fields), nonce_);
  footer.kinds_checksum = checksum(bytes_of(kinds), nonce_);
  for (const IndexEntry& entry : index) {
    if (footer.oldest_ns == 0 || entry.written_ns < footer.oldest_ns) footer.oldest_ns = entry.written_ns;
    footer.newest_ns = std::max(footer.newest_ns, entry.written_ns);
  }
  finish_struct(footer);

  const std::array<Bytes, 4> tail = {index_bytes, bytes_of(fields), bytes_of(kinds), bytes_of_struct(footer)};
  if (Status written = file_->append(tail); !written.ok()) {
    if (!file_->truncate(byte_count_).ok()) is_broken_ = true;
    return written;
  }
  Status synced = file_->sync();
  is_lost_ = !synced.ok();
  is_sealed_ = synced.ok();
  return synced;
}

}  // namespace lmemo
