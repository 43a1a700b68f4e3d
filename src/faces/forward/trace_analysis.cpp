#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "faces/forward/reuse_distance.h"
#include "faces/forward/trace_line.h"
#include "lmemo/forward.h"

namespace lmemo {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kMaxLineBytes = 16 << 20;

// Calls visit(line, number) for every line of the file, without its end. The last one may lack its newline.
Status for_each_line(const std::filesystem::path& path, const Watch& watch,
                     const std::function<void(std::string_view, uint64_t)>& visit) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return Error{ErrorCode::io_error, "cannot read the trace " + path.string() + ": " + std::strerror(errno)};
  std::string buffer;
  uint64_t number = 0, byte_count = 0;
  bool is_too_long = false;
  Status status;
  while (true) {
    const size_t kept = buffer.size();
    buffer.resize(kept + kReadBytes);
    ssize_t got;
    do got = ::read(file, buffer.data() + kept, kReadBytes);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
      status =
          Error{ErrorCode::io_error, "cannot read the trace " + path.string() + ": " + std::strerror(errno)};
      break;
    }
    buffer.resize(kept + static_cast<size_t>(got));
    byte_count += static_cast<size_t>(got);
    size_t start = 0;
    for (size_t end; (end = buffer.find('\n', std::max(start, kept))) != std::string::npos; start = end + 1) {
      // The rest of a line that was given up belongs to it.
      visit(is_too_long ? std::string_view("…") : std::string_view(buffer).substr(start, end - start),
            ++number);
      is_too_long = false;
    }
    buffer.erase(0, start);
    if (buffer.size() > kMaxLineBytes) {
      is_too_long = true;
      buffer.clear();
    }
    watch.report({"trace", byte_count, 0, "bytes"});
    if (watch.stopped()) {
      status = Error{ErrorCode::interrupted, "while reading the trace"};
      break;
    }
    if (got == 0) {
      if (!buffer.empty() || is_too_long) visit(buffer, ++number);
      break;
    }
  }
  ::close(file);
  return status;
}

struct MeanCost {
  double seconds = 0;
  uint64_t misses = 0;
  double mean() const { return misses == 0 ? 0 : seconds / static_cast<double>(misses); }
};

class Analysis {
 public:
  Analysis(TraceReport& report, size_t slowest) : report_(report), most_slowest_(slowest) {}

  void add(std::string_view text, uint64_t number) {
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    ++report_.lines;
    const Result<TraceLine> line = read_trace_line(text);
    if (!line.ok()) {
      if (report_.malformed++ == 0) {
        report_.first_malformed_line = number;
        report_.first_complaint = line.error().message;
      }
      return;
    }
    add(*line, number);
  }

  void finish() {
    // Hits before the first miss of their call, and hits of calls without any, cost what such calls cost on average.
    for (const Unpriced& hit : unpriced_) {
      const MeanCost& near = cost_of_view_[hit.view_key];
      const double cost = near.misses > 0 ? near.mean() : cost_of_op_[hit.op_key].mean();
      save(*hit.op, *hit.view, *hit.probe, std::max(0.0, cost - hit.spent_seconds));
    }
    report_.distinct_calls = call_numbers_.size();
    make_curve();
    std::sort(report_.slowest.begin(), report_.slowest.end(), is_slower);
  }

 private:
  struct Unpriced {
    TraceCounts *op, *view, *probe;
    uint32_t op_key, view_key;
    double spent_seconds;
  };

  static bool is_slower(const SlowCall& a, const SlowCall& b) {
    return a.wall_ms != b.wall_ms ? a.wall_ms > b.wall_ms : a.line < b.line;
  }

  void add(const TraceLine& line, uint64_t number) {
    if (report_.total.lookups() + report_.total.failures == 0)
      report_.first_time_seconds = report_.last_time_seconds = line.time_seconds;
    report_.first_time_seconds = std::min(report_.first_time_seconds, line.time_seconds);
    report_.last_time_seconds = std::max(report_.last_time_seconds, line.time_seconds);
    TraceCounts& op = report_.by_op[line.op];
    TraceCounts& view = report_.by_view[line.view_id];
    TraceCounts& probe = report_.by_probe[line.probe.value_or("")];
    const double seconds = line.wall_ms / 1000;
    for (TraceCounts* counts : {&report_.total, &op, &view, &probe}) {
      ++(line.has_failed ? counts->failures : line.is_hit ? counts->hits : counts->misses);
      if (line.is_hit && line.has_waited) ++counts->waited;
      counts->spent_seconds += seconds;
    }
    note_slow(line, number);
    if (line.has_failed) return;

    const uint32_t op_key = number_of(op_numbers_, line.op, cost_of_op_);
    const uint32_t view_key = number_of(view_numbers_, line.op + '\0' + line.view_id, cost_of_view_);
    const std::string call = line.op + '\0' + line.view_id + '\0' + line.prompt_hash + '\0' + line.top_k;
    const auto [place, is_new] = call_numbers_.try_emplace(call, static_cast<uint32_t>(call_numbers_.size()));
    if (is_new) cost_of_call_.push_back(-1);
    lookups_.push_back(place->second);
    double& cost = cost_of_call_[place->second];
    if (!line.is_hit) {
      cost = seconds;
      for (MeanCost* mean : {&cost_of_op_[op_key], &cost_of_view_[view_key]}) {
        mean->seconds += seconds;
        ++mean->misses;
      }
    } else if (cost >= 0) {
      save(op, view, probe, std::max(0.0, cost - seconds));
    } else {
      unpriced_.push_back({&op, &view, &probe, op_key, view_key, seconds});
    }
  }

  static uint32_t number_of(std::unordered_map<std::string, uint32_t>& numbers, const std::string& name,
                            std::vector<MeanCost>& costs) {
    const auto [place, is_new] = numbers.try_emplace(name, static_cast<uint32_t>(numbers.size()));
    if (is_new) costs.emplace_back();
    return place->second;
  }

  void save(TraceCounts& op, TraceCounts& view, TraceCounts& probe, double seconds) {
    for (TraceCounts* counts : {&report_.total, &op, &view, &probe}) counts->saved_seconds += seconds;
  }

  void note_slow(const TraceLine& line, uint64_t number) {
    std::vector<SlowCall>& slowest = report_.slowest;  // A heap with the quickest of them on top.
    SlowCall call{number, line.wall_ms, line.is_hit, {}, {}, {}, {}, {}};
    if (most_slowest_ == 0 || (slowest.size() == most_slowest_ && !is_slower(call, slowest.front()))) return;
    if (slowest.size() == most_slowest_) {
      std::pop_heap(slowest.begin(), slowest.end(), is_slower);
      slowest.pop_back();
    }
    call.op = line.op;
    call.view_id = line.view_id;
    call.prompt_hash = line.prompt_hash;
    call.top_k = line.top_k;
    call.probe = line.probe;
    slowest.push_back(std::move(call));
    std::push_heap(slowest.begin(), slowest.end(), is_slower);
  }

  void make_curve() {
    if (lookups_.empty()) return;
    const auto calls = static_cast<uint32_t>(call_numbers_.size());
    const std::vector<uint64_t> hits = hits_by_cache_size(lookups_, calls);
    uint64_t enough = 1;  // The smallest cache that hits all that can be hit.
    for (uint64_t size = 1; size <= calls; ++size)
      if (hits[size - 1] > 0) enough = size;
    uint64_t sum = 0, wanted = 1;
    for (uint64_t size = 1; size <= enough; ++size) {
      sum += hits[size - 1];
      if (size != wanted && size != enough) continue;
      if (size == wanted) wanted *= 2;
      report_.curve.push_back({size, sum, static_cast<double>(sum) / static_cast<double>(lookups_.size())});
    }
  }

  TraceReport& report_;
  const size_t most_slowest_;
  std::unordered_map<std::string, uint32_t> call_numbers_, op_numbers_, view_numbers_;
  std::vector<uint32_t> lookups_;
  std::vector<double> cost_of_call_;  // Seconds of its last miss; negative: none yet.
  std::vector<MeanCost> cost_of_op_, cost_of_view_;
  std::vector<Unpriced> unpriced_;
};

}  // namespace

Result<TraceReport> analyse_trace(const std::filesystem::path& path, size_t slowest, const Watch& watch) {
  TraceReport report;
  Analysis analysis(report, slowest);
  LMEMO_TRY(for_each_line(path, watch,
                          [&](std::string_view line, uint64_t number) { analysis.add(line, number); }));
  analysis.finish();
  return report;
}

}  // namespace lmemo
