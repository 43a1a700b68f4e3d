// When entries were last found, so that the least recently used can go first. A hit costs no write: it sets a mark in
// memory. The marks of a run are written in one go as an ordinary record per segment, of the reserved kind below:
// an array of minutes, one per entry. Losing one loses a little order, never data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "store/segment.h"

namespace lmemo {

inline constexpr std::string_view kReservedPrefix = "lmemo.";
inline constexpr std::string_view kAccessKind = "lmemo.access";
// Younger than this counts as just used: a tree that is synced every few minutes writes nothing.
inline constexpr int64_t kAccessGranularityMinutes = 60;

inline bool is_reserved_kind(std::string_view kind) { return kind.starts_with(kReservedPrefix); }
inline constexpr int64_t kNsPerMinute = 60'000'000'000;
inline uint32_t minutes_of(int64_t time_ns) {
  return static_cast<uint32_t>(std::max<int64_t>(time_ns, 0) / kNsPerMinute);
}
// Bytes from disk may name a minute that no clock will show.
inline int64_t ns_of_minutes(uint32_t minutes) {
  return std::min<int64_t>(minutes, INT64_MAX / kNsPerMinute) * kNsPerMinute;
}

Key access_key(uint64_t segment_nonce);
// The segment that an access record is about; 0 if it is not one.
uint64_t segment_of_access_key(std::string_view encoding);

class AccessTimes {
 public:
  // `recorded`: the value of the access record, empty if there is none.
  AccessTimes(const Segment& segment, Bytes recorded);
  uint32_t minutes(uint32_t ordinal) const;
  int64_t ns(uint32_t ordinal) const { return ns_of_minutes(minutes(ordinal)); }
  // Takes over the marks of this run. Empty if nothing is worth writing.
  std::vector<uint32_t> with_marks(uint32_t now_minutes) const;

 private:
  const Segment& segment_;
  Bytes recorded_;
};

}  // namespace lmemo
