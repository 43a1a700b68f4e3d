// Questions about what is there: scan, explain, stats. They read indexes and fields blocks, never values.
#include <algorithm>

#include "store/disk_store.h"
#include "store/explanation.h"
#include "store/field_filter.h"

namespace lmemo {
namespace {

// Of the fields of `encoding`, how many are among `wanted`.
size_t shared_fields(std::string_view encoding, const std::vector<std::string_view>& wanted) {
  std::vector<std::string_view> fields;
  if (!split_encoding(encoding, fields)) return 0;
  return static_cast<size_t>(std::count_if(fields.begin(), fields.end(), [&](std::string_view field) {
    return std::find(wanted.begin(), wanted.end(), field) != wanted.end();
  }));
}

// The checksum of the fields is that of the whole block: whoever made it up could call any entry by any key.
Result<Key> key_of(const Segment& segment, uint32_t ordinal) {
  LMEMO_ASSIGN(const std::string encoding, segment.encoding_of(ordinal));
  LMEMO_ASSIGN(Key key, Key::from_encoding(bytes_of(encoding)));
  if (key.digest() != segment.entry(ordinal).digest)
    return Error{ErrorCode::corruption, segment.name() + ": the fields of entry " +
                                            segment.entry(ordinal).digest.hex() +
                                            " hash to something else; run `lmemo verify`"};
  return key;
}

}  // namespace

Status DiskStore::scan(const ScanFilter& filter, const ScanVisitor& visit) {
  struct Part {
    SegmentPtr segment;
    std::vector<uint32_t> ordinals;
    std::vector<uint32_t> minutes;
    std::vector<std::string> kinds;
  };
  std::vector<Part> parts;
  refresh_if_due();
  {
    FieldFilter wanted(filter);
    const Lock lock(mutex_);
    for (const SegmentPtr& segment : directory_.segments()) {
      Part part;
      part.segment = segment;
      for (uint32_t ordinal = 0; ordinal < segment->entries().size(); ++ordinal) {
        const IndexEntry& entry = segment->entry(ordinal);
        if (!is_alive(*segment, ordinal) || segment->has_mark(ordinal, Segment::kDamaged)) continue;
        if (is_reserved_kind(segment->kind_name(entry.kind)) || !wanted.matches(*segment, ordinal)) continue;
        part.ordinals.push_back(ordinal);
      }
      if (part.ordinals.empty()) continue;
      part.minutes = access_minutes_locked(*segment);
      part.kinds = segment->kinds();  // A copy: those of a pending segment may grow.
      parts.push_back(std::move(part));
    }
  }
  for (const Part& part : parts)
    for (const uint32_t ordinal : part.ordinals) {
      const IndexEntry& entry = part.segment->entry(ordinal);
      EntryInfo info;
      info.digest = entry.digest;
      info.kind = part.kinds[entry.kind];
      info.value_bytes = entry.value_bytes;
      info.stored_bytes = stored_bytes(entry);
      info.written_ns = entry.written_ns;
      info.accessed_ns = std::max(entry.written_ns, ns_of_minutes(part.minutes[ordinal]));
      info.key = [&part, ordinal] { return key_of(*part.segment, ordinal); };
      if (!visit(info)) return {};
    }
  return {};
}

Result<bool> DiskStore::follow(const std::string& kind, FollowPosition& position, Follower& follower) {
  refresh_if_due();
  if (position.changes == changes_.load(std::memory_order_acquire)) return false;
  const Lock lock(mutex_);
  const auto first_unseen = [&](const Segment& segment) -> uint64_t {
    const auto seen = position.segments.find(segment.nonce());
    if (seen == position.segments.end()) return 0;
    // Once published, a batch is sorted: whoever saw a part of it cannot tell which.
    const bool was_sorted = seen->second.was_pending && segment.state() != SegmentState::pending;
    return was_sorted ? 0 : std::min<uint64_t>(seen->second.entries, segment.entries().size());
  };
  const auto has_new_erasure = [&](const SegmentPtr& segment) {
    const std::span<const IndexEntry> unseen = segment->entries().subspan(first_unseen(*segment));
    return std::any_of(unseen.begin(), unseen.end(),
                       [](const IndexEntry& entry) { return entry.kind == kErasureKind; });
  };
  const std::vector<SegmentPtr>& segments = directory_.segments();
  // A batch with an erasure that was seen is looked at once more when it is published: harmless, and rare.
  if (position.changes == 0 || position.removals != removals_.load(std::memory_order_relaxed) ||
      std::any_of(segments.begin(), segments.end(), has_new_erasure)) {
    position = {};
    follower.start_over();
  }
  std::string encoding;
  std::vector<std::string_view> fields;
  std::vector<uint32_t> numbers;
  for (const SegmentPtr& segment : segments) {
    const uint64_t first = first_unseen(*segment), end = segment->entries().size();
    position.segments[segment->nonce()] = {end, segment->state() == SegmentState::pending};
    const auto number =
        std::find(segment->kinds().begin(), segment->kinds().end(), kind) - segment->kinds().begin();
    for (auto ordinal = static_cast<uint32_t>(first); ordinal < end; ++ordinal) {
      const IndexEntry& entry = segment->entry(ordinal);
      if (entry.kind != number || !is_alive(*segment, ordinal) ||
          segment->has_mark(ordinal, Segment::kDamaged))
        continue;
      if (segment->fields()) {
        segment->fields()->fields_of(ordinal, fields);
        segment->fields()->numbers_of(ordinal, numbers);
      } else {
        Result<std::string> made = segment->encoding_of(ordinal);
        if (!made.ok()) continue;
        encoding = std::move(*made);
        if (!split_encoding(encoding, fields)) continue;
      }
      follower.see({stored_bytes(entry), entry.written_ns, fields, numbers, segment->nonce()});
    }
    numbers.clear();
  }
  position.changes = changes_.load(std::memory_order_relaxed);
  position.removals = removals_.load(std::memory_order_relaxed);
  return true;
}

Result<RemovalReport> DiskStore::erase_matching(const ScanFilter& filter, const Watch& watch) {
  FieldFilter wanted(filter);
  return remove_where(
      [&](const Segment& segment, uint32_t ordinal, int64_t) { return wanted.matches(segment, ordinal); },
      watch);
}

Result<Explanation> DiskStore::explain(const Key& key) {
  Explanation explanation;
  explanation.is_hit = contains(key);
  std::vector<std::string_view> wanted;
  split_encoding(text_of(key.encoding()), wanted);

  std::optional<Key> best;
  size_t best_shared = 0;
  int64_t best_written = 0;
  const Lock lock(mutex_);
  for (const SegmentPtr& segment : directory_.segments()) {
    std::vector<uint32_t> numbers;
    if (segment->fields())
      for (const std::string_view field : wanted)
        if (const auto number = segment->fields()->number_of(field)) numbers.push_back(*number);
    for (uint32_t ordinal = 0; ordinal < segment->entries().size(); ++ordinal) {
      const IndexEntry& entry = segment->entry(ordinal);
      if (entry.kind == kErasureKind || segment->kind_name(entry.kind) != key.kind()) continue;
      if (!directory_.is_current(*segment, ordinal) || segment->has_mark(ordinal, Segment::kDamaged))
        continue;
      ++explanation.candidates;
      size_t shared = 0;
      if (segment->fields()) {
        for (const uint32_t number : numbers) shared += segment->fields()->has(ordinal, number);
      } else if (const Result<std::string> encoding = segment->encoding_of(ordinal); encoding.ok()) {
        shared = shared_fields(*encoding, wanted);
      }
      if (best && (shared < best_shared || (shared == best_shared && entry.written_ns <= best_written)))
        continue;
      Result<Key> its_key = key_of(*segment, ordinal);
      if (!its_key.ok()) continue;
      best = std::move(*its_key);
      best_shared = shared;
      best_written = entry.written_ns;
    }
  }
  if (!best) return explanation;
  explanation.differing = differences(key, *best);
  explanation.nearest = std::move(best);
  explanation.nearest_written_ns = best_written;
  return explanation;
}

StoreStats DiskStore::stats() {
  StoreStats stats;
  refresh_if_due();
  const Lock lock(mutex_);
  stats.counters = counters_;
  for (const SegmentPtr& segment : directory_.segments()) {
    const std::vector<std::string>& kinds = segment->kinds();
    std::vector<KindStats> by_kind(kinds.size());
    for (uint32_t ordinal = 0; ordinal < segment->entries().size(); ++ordinal) {
      const IndexEntry& entry = segment->entry(ordinal);
      if (!is_alive(*segment, ordinal)) continue;
      KindStats& kind = by_kind[entry.kind];
      ++kind.entries;
      kind.value_bytes += entry.value_bytes;
      kind.stored_bytes += stored_bytes(entry);
      if (is_reserved_kind(kinds[entry.kind])) continue;
      stats.oldest_ns = stats.oldest_ns == 0 ? entry.written_ns : std::min(stats.oldest_ns, entry.written_ns);
      stats.newest_ns = std::max(stats.newest_ns, entry.written_ns);
    }
    for (uint16_t number = 0; number < kinds.size(); ++number) {
      stats.live_bytes += by_kind[number].stored_bytes;
      if (is_reserved_kind(kinds[number])) continue;
      if (const uint64_t hits = segment->hits(number)) stats.counters[kinds[number]].hits += hits;
      if (by_kind[number].entries == 0) continue;
      KindStats& kind = stats.kinds[kinds[number]];
      kind.entries += by_kind[number].entries;
      kind.value_bytes += by_kind[number].value_bytes;
      kind.stored_bytes += by_kind[number].stored_bytes;
      stats.entries += by_kind[number].entries;
    }
  }
  for (const auto& [kind, limit] : kind_limits_) stats.kinds[kind].max_bytes = limit.max_bytes;
  for (const auto& [kind, counters] : stats.counters) stats.hits += counters.hits;
  stats.disk_bytes = disk_bytes_locked();
  stats.max_bytes = options_.max_bytes;
  stats.segments = published_.size();
  stats.misses = misses_.total();
  stats.puts = puts_;
  stats.failed_puts = failed_puts_;
  stats.erased = erased_;
  stats.evicted = evicted_;
  stats.evicted_bytes = evicted_bytes_;
  stats.damaged_records = damaged_records_;
  stats.published_segments = published_segments_;
  stats.salvaged_records = salvaged_;
  return stats;
}

}  // namespace lmemo
