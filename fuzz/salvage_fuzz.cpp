// Any bytes as what a dead writer left: taken over, sealed, and then a sound segment with exactly the records that were
// taken over. Once as they are, once with every checksum made right.
#include "look_at_segment.h"
#include "store/segment_writer.h"
#include "support/handmade_segment.h"

namespace {

using namespace lmemo;

class FileInMemory : public WritableFile {
 public:
  explicit FileInMemory(std::string& bytes) : bytes_(bytes) {}
  Status append(std::span<const Bytes> parts) override {
    for (const Bytes part : parts) bytes_ += text_of(part);
    return {};
  }
  Status truncate(uint64_t byte_count) override {
    fuzz::require(byte_count <= bytes_.size());
    bytes_.resize(byte_count);
    return {};
  }
  Status sync() override { return {}; }
  void start_writeback(uint64_t, uint64_t) override {}
  Result<std::shared_ptr<const MappedFile>> map(uint64_t capacity) override {
    return std::shared_ptr<const MappedFile>(
        std::make_shared<fuzz::FuzzFile>(bytes_of(bytes_).first(capacity)));
  }

 private:
  std::string& bytes_;
};

void salvage(std::string bytes) {
  const fuzz::FuzzFile before(bytes_of(bytes));
  std::unique_ptr<WritableFile> file = std::make_unique<FileInMemory>(bytes);
  const auto writer = SegmentWriter::resume(file, "fuzz.part", before.bytes());
  fuzz::require(writer.ok());
  if (!*writer) return;
  const uint64_t kept = (*writer)->byte_count();
  const uint32_t records = (*writer)->entry_count();
  fuzz::require((*writer)->seal().ok());
  // Not a byte of what was there has changed.
  fuzz::require(std::string_view(bytes).substr(0, kept) == text_of(before.bytes()).substr(0, kept));
  const auto sealed = Segment::read(std::make_shared<fuzz::FuzzFile>(bytes_of(bytes)), "fuzz.seg");
  fuzz::require(sealed.ok() && (*sealed)->state() == SegmentState::sealed && (*sealed)->problems().empty());
  fuzz::require((*sealed)->entries().size() <= records);
  fuzz::require((*sealed)->fields().has_value());
  for (uint32_t ordinal = 0; ordinal < (*sealed)->entries().size(); ++ordinal)
    fuzz::require((*sealed)->checked_record(ordinal).has_value());
  fuzz::look_at_segment(bytes_of(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  salvage(bytes);
  test::fix_all_checksums(bytes);
  salvage(bytes);
  return 0;
}
