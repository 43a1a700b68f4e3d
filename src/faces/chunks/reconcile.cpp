#include "faces/chunks/reconcile.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "base/sha256.h"
#include "codec/checksum.h"
#include "faces/chunks/documents.h"
#include "faces/chunks/range_reader.h"

namespace lmemo::chunks {
namespace {

// Where in the plan a range stands.
struct Place {
  size_t entry = 0;
  size_t range = 0;
};

// What was typed behind the end of the last planned line is new, but for what an edit of that part may have added.
uint64_t slack(uint64_t bytes) { return bytes / 10 + 65536; }

using Places = std::map<uint32_t, std::vector<Place>>;

Places places_by_source(const Plan& plan) {
  Places places;
  for (size_t entry = 0; entry < plan.entries.size(); ++entry)
    for (size_t range = 0; range < plan.entries[entry].ranges.size(); ++range)
      places[plan.entries[entry].ranges[range].source].push_back({entry, range});
  return places;
}

// Reads one changed source and says where its ranges are now.
class Alignment {
 public:
  Alignment(const PlanSource& source, std::vector<PlanRange> ranges)
      : source_(source), ranges_(std::move(ranges)) {}

  // Ranges with their new places; `changed` says which have new content.
  Status align() {
    changed_.assign(ranges_.size(), false);
    if (source_.type == SourceType::text) return align_text();
    for (size_t at = 0; at < ranges_.size(); ++at)
      if (ranges_[at].documents > 0) starts_.emplace(ranges_[at].first_hash, at);
    size_t next = 0;
    while (next < ranges_.size()) {
      LMEMO_ASSIGN(const bool is_here, is_at(next, position_));
      if (is_here) {
        LMEMO_TRY(place(next++));
        continue;
      }
      LMEMO_TRY(pass_over_edit(next));
    }
    LMEMO_TRY(reader_.read(source_.path, position_, position_ + 1, 0, bytes_));
    reaches_end_ = bytes_.empty();
    return {};
  }

  bool begins_as_planned() {
    const auto is_here = is_at(0, ranges_.front().begin);
    return is_here.ok() && *is_here;
  }
  const std::vector<PlanRange>& ranges() const { return ranges_; }
  const std::vector<bool>& changed() const { return changed_; }
  uint64_t planned_bytes() const { return position_; }
  uint64_t planned_lines() const { return line_ - 1; }
  bool reaches_end() const { return reaches_end_; }  // Nothing was appended.

 private:
  Status align_text() {
    if (ranges_.size() != 1) return {};
    PlanRange& range = ranges_.front();
    LMEMO_TRY(reader_.read(source_.path, 0, UINT64_MAX, 0, bytes_));
    const Digest digest = sha256(bytes_of(bytes_));
    position_ = bytes_.size();
    line_ = 2;
    if (digest == range.sha256 && bytes_.size() == range.end) return {};
    range.sha256 = digest;
    range.end = bytes_.size();
    range.first_hash = checksum(bytes_of(std::string_view(bytes_).substr(0, size_t{4} << 20)));
    changed_[0] = true;
    return {};
  }

  // Does range `at` lie at this offset, byte for byte?
  Result<bool> is_at(size_t at, uint64_t offset) {
    const PlanRange& range = ranges_[at];
    const uint64_t length = range.end - range.begin;
    LMEMO_TRY(probe_.read(source_.path, offset, offset + length + 1, 0, probed_));
    if (probed_.size() < length) return false;
    if (range.ends_in_line && probed_.size() > length && probed_[length] != '\n') return false;
    return sha256(bytes_of(std::string_view(probed_).substr(0, length))) == range.sha256;
  }

  // Range `at` was found at position_.
  Status place(size_t at) {
    PlanRange& range = ranges_[at];
    const uint64_t length = range.end - range.begin;
    range.begin = position_;
    range.end = position_ + length;
    range.first_line = line_;
    LMEMO_TRY(reader_.read(source_.path, range.begin, range.end, 0, bytes_));
    line_ +=
        static_cast<uint64_t>(std::count(bytes_.begin(), bytes_.end(), '\n')) + (range.ends_in_line ? 1 : 0);
    position_ = range.end;
    return {};
  }

  // Ranges from `next` on have changed. Finds the first one behind the edit, gives what lies before it to the changed ones.
  Status pass_over_edit(size_t& next) {
    const size_t first = next;
    std::vector<uint64_t> line_ends;  // Of the lines of the edited part.
    uint64_t scanned = position_, old_bytes = 0;
    size_t found = ranges_.size();
    for (size_t at = first; at < ranges_.size(); ++at) old_bytes += ranges_[at].end - ranges_[at].begin;

    std::string window, line;
    while (found == ranges_.size()) {
      constexpr uint64_t kWindow = uint64_t{4} << 20;
      const uint64_t from = scanned + line.size();
      LMEMO_TRY(reader_.read(source_.path, from, from + kWindow, 0, window));
      std::string_view rest = window;
      while (!rest.empty()) {
        const size_t newline = rest.find('\n');
        line += rest.substr(0, newline == std::string_view::npos ? rest.size() : newline + 1);
        rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
        if (newline == std::string_view::npos) break;
        LMEMO_ASSIGN(found, range_that_starts_with(line, first + 1, scanned));
        if (found != ranges_.size()) break;
        scanned += line.size();
        line_ends.push_back(scanned);
        line.clear();
      }
      if (window.size() < kWindow) {
        if (found == ranges_.size() && !line.empty()) {
          LMEMO_ASSIGN(found, range_that_starts_with(line, first + 1, scanned));
          if (found == ranges_.size()) line_ends.push_back(scanned + line.size());
        }
        break;
      }
    }
    if (found ==
        ranges_.size())  // To the end of the file: leave what was appended to whoever extends the plan.
      if (!line_ends.empty() && line_ends.back() - position_ > old_bytes + slack(old_bytes))
        while (line_ends.size() > 1 && line_ends[line_ends.size() - 2] - position_ >= old_bytes)
          line_ends.pop_back();
    return divide(first, found, line_ends, next);
  }

  // The lines of an edited part among the ranges [first, last), each about as long as it was.
  Status divide(size_t first, size_t last, const std::vector<uint64_t>& line_ends, size_t& next) {
    size_t line = 0;
    for (size_t at = first; at < last; ++at) {
      PlanRange& range = ranges_[at];
      const uint64_t wanted = range.end - range.begin;
      uint64_t end = position_;
      while (line < line_ends.size() && (at + 1 == last || end - position_ < wanted)) end = line_ends[line++];
      LMEMO_TRY(reader_.read(source_.path, position_, end, 0, bytes_));
      changed_[at] = true;
      range.begin = position_;
      range.end = end;
      range.first_line = line_;
      range.documents = 0;
      range.first_hash = 0;
      range.sha256 = sha256(bytes_of(bytes_));
      range.ends_in_line = !bytes_.empty() && bytes_.back() != '\n';
      for (std::string_view rest = bytes_; !rest.empty();) {
        const size_t length = std::min(rest.find('\n'), rest.size() - 1) + 1;
        if (!is_blank(rest.substr(0, length)) && range.documents++ == 0)
          range.first_hash = checksum(bytes_of(rest.substr(0, length)));
        rest.remove_prefix(length);
        ++line_;
      }
      position_ = end;
    }
    next = last;
    return {};
  }

  Result<size_t> range_that_starts_with(std::string_view line, size_t from, uint64_t offset) {
    const auto [begin, end] = starts_.equal_range(checksum(bytes_of(line)));
    for (auto start = begin; start != end; ++start) {
      if (start->second < from) continue;
      LMEMO_ASSIGN(const bool is_here, is_at(start->second, offset));
      if (is_here) return start->second;
    }
    return ranges_.size();
  }

  const PlanSource& source_;
  std::vector<PlanRange> ranges_;
  std::vector<bool> changed_;
  std::unordered_multimap<uint64_t, size_t> starts_;  // Ranges by the hash of their first line.
  uint64_t position_ = 0, line_ = 1;
  bool reaches_end_ = true;
  RangeReader reader_, probe_;
  std::string bytes_, probed_;
};

}  // namespace

Result<std::vector<PlanSource>> moved_sources(const Plan& plan, const std::vector<Path>& files) {
  std::set<std::string> known;
  std::vector<const PlanSource*> gone;
  for (const auto& [number, source] : plan.sources) {
    known.insert(source.path.native());
    if (!stamp_of_file(source.path).ok()) gone.push_back(&source);
  }
  std::vector<PlanSource> moved;
  if (gone.empty()) return moved;
  const auto places = places_by_source(plan);
  for (const Path& path : files) {
    const auto stamp = stamp_of_file(path);
    if (known.contains(path.native()) || !stamp.ok()) continue;
    for (auto source = gone.begin(); source != gone.end(); ++source) {
      const bool is_packed = path.extension() == ".gz" || path.extension() == ".zst";
      if (path.extension() != (*source)->path.extension() ||
          (!is_packed && stamp->byte_count < (*source)->planned_bytes))
        continue;
      PlanSource now = **source;
      now.path = path;
      std::vector<PlanRange> ranges;
      if (const auto found = places.find(now.number); found != places.end())
        for (const Place& place : found->second)
          ranges.push_back(plan.entries[place.entry].ranges[place.range]);
      const std::vector<PlanRange> before = ranges;
      Alignment alignment(now, std::move(ranges));
      if (before.empty() || !alignment.begins_as_planned() || !alignment.align().ok() ||
          alignment.ranges() != before)
        continue;
      if (alignment.reaches_end()) now.stamp = *stamp;
      moved.push_back(now);
      gone.erase(source);
      break;
    }
  }
  return moved;
}

Result<Reconciliation> reconcile(const Plan& plan, const Watch& watch) {
  auto places = places_by_source(plan);

  Reconciliation result;
  std::set<uint64_t> stale, lost;
  std::map<size_t, PlanEntry> revised;
  uint64_t done = 0;
  for (const auto& [number, source] : plan.sources) {
    watch.report({"compare with the sources", ++done, plan.sources.size(), "sources"});
    if (watch.stopped()) return Error{ErrorCode::interrupted, "interrupted"};
    const auto stamp = stamp_of_file(source.path);
    if (stamp.ok() && *stamp == source.stamp) continue;
    std::vector<PlanRange> ranges;
    for (const Place& place : places[number]) ranges.push_back(plan.entries[place.entry].ranges[place.range]);
    const std::vector<PlanRange> before = ranges;
    // A chunk that was revised has its ranges in another order than the file, never in another file.
    Alignment alignment(source, std::move(ranges));
    if (!stamp.ok() || !alignment.align().ok()) {
      result.gone.push_back(source.path.string());
      for (const Place& place : places[number]) lost.insert(plan.entries[place.entry].number);
      continue;
    }
    for (size_t at = 0; at < before.size(); ++at) {
      const size_t entry = places[number][at].entry;
      if (alignment.changed()[at]) stale.insert(plan.entries[entry].number);
      if (alignment.ranges()[at] == before[at]) continue;
      const auto [copy, is_new] = revised.try_emplace(entry, plan.entries[entry]);
      copy->second.ranges[places[number][at].range] = alignment.ranges()[at];
      if (alignment.changed()[at]) copy->second.duplicates.clear();  // Nobody knows any more.
    }
    PlanSource now = source;
    // A file that also grew keeps its old stamp, so that the scan looks at it.
    if (alignment.reaches_end())
      now.stamp = *stamp;
    else if (plan.limit_documents == 0)
      result.grown.push_back(source.path.string());
    now.planned_bytes = alignment.planned_bytes();
    now.planned_lines = alignment.planned_lines();
    if (now.planned_bytes != source.planned_bytes || now.stamp != source.stamp)
      result.revision.sources.push_back(now);
  }
  for (auto& [entry, revision] : revised) result.revision.entries.push_back(std::move(revision));
  result.stale.assign(stale.begin(), stale.end());
  result.lost.assign(lost.begin(), lost.end());
  return result;
}

}  // namespace lmemo::chunks
