#include "store/access_times.h"

#include <algorithm>

namespace lmemo {

Key access_key(uint64_t segment_nonce) {
  Result<Key> key = Key::of(kAccessKind, {{"segment", static_cast<int64_t>(segment_nonce)}});
  assert(key.ok());
  return std::move(key).value();
}

uint64_t segment_of_access_key(std::string_view encoding) {
  const Result<Key> key = Key::from_encoding(bytes_of(encoding));
  if (!key.ok() || key->kind() != kAccessKind) return 0;
  for (const Field& field : key->fields())
    if (const int64_t* nonce = std::get_if<int64_t>(&field.value.variant()))
      return static_cast<uint64_t>(*nonce);
  return 0;
}

AccessTimes::AccessTimes(const Segment& segment, Bytes recorded) : segment_(segment), recorded_(recorded) {
  // A record of another length is about other entries.
  if (recorded_.size() != segment.entries().size() * sizeof(uint32_t)) recorded_ = {};
}

uint32_t AccessTimes::minutes(uint32_t ordinal) const {
  const IndexEntry& entry = segment_.entry(ordinal);
  const uint32_t recorded =
      recorded_.empty() ? 0 : load_le<uint32_t>(recorded_.data() + ordinal * sizeof(uint32_t));
  return std::max({minutes_of(entry.written_ns), entry.accessed_minutes, recorded});
}

std::vector<uint32_t> AccessTimes::with_marks(uint32_t now_minutes) const {
  const uint32_t count = static_cast<uint32_t>(segment_.entries().size());
  std::vector<uint32_t> updated(count);
  bool is_news = false;
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    updated[ordinal] = minutes(ordinal);
    if (!segment_.has_mark(ordinal, Segment::kTouched)) continue;
    is_news |= int64_t{now_minutes} - updated[ordinal] >= kAccessGranularityMinutes;
    updated[ordinal] = std::max(updated[ordinal], now_minutes);
  }
  if (!is_news) updated.clear();
  return updated;
}

}  // namespace lmemo
