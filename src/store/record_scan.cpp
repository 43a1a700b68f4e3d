#include "store/record_scan.h"

namespace lmemo {
namespace {

// A file made up of headers that each claim the whole rest would take quadratic time to refuse. What honest damage
// costs is far below this many times the file.
constexpr uint64_t kMaxEffort = 16;

}  // namespace

RecordScan scan_records(Bytes records, uint64_t nonce,
                        const std::function<void(uint64_t offset, const RecordView&)>& visit,
                        const std::function<bool()>& should_stop) {
  RecordScan scan;
  uint64_t offset = sizeof(SegmentHeader);
  scan.end_of_last_record = offset;
  uint64_t effort = 0;
  for (uint64_t steps = 0; offset < records.size(); ++steps) {
    if (steps % 256 == 0 && should_stop && should_stop()) break;
    const std::optional<RecordView> record = read_record(records, nonce, offset, &effort);
    if (record) {
      visit(offset, *record);
      ++scan.records;
      offset += record->byte_count;
      scan.end_of_last_record = offset;
      continue;
    }
    const uint64_t rest = records.size() - offset;
    const uint64_t step = effort / kMaxEffort > records.size() ? rest : std::min<uint64_t>(8, rest);
    if (!scan.bad.empty() && scan.bad.back().offset + scan.bad.back().byte_count == offset)
      scan.bad.back().byte_count += step;
    else
      scan.bad.push_back({offset, step});
    offset += step;
  }
  return scan;
}

}  // namespace lmemo
