// Finds every sound record of a segment without trusting its index: for files whose writer died and for damaged ones.
//
// Records follow one another, so the scan goes from one to the next. Where one is damaged, its length cannot be
// trusted: the scan then tries every 8-byte step until a record checks out again. Checksums are seeded with the
// segment's nonce and the offset, so bytes of another segment inside a value never pass for a record.
#pragma once

#include <functional>
#include <vector>

#include "lmemo/progress.h"
#include "store/record.h"

namespace lmemo {

struct BadRange {
  uint64_t offset = 0;
  uint64_t byte_count = 0;
};

struct RecordScan {
  uint64_t records = 0;
  uint64_t end_of_last_record = 0;
  std::vector<BadRange> bad;
};

RecordScan scan_records(Bytes records, uint64_t nonce,
                        const std::function<void(uint64_t offset, const RecordView&)>& visit,
                        const std::function<bool()>& should_stop = {});

}  // namespace lmemo
