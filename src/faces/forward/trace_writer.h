// Writes one JSON object a line for every lookup, at the price of a few stores for the thread that looks up.
//
//   LMEMO_ASSIGN(const std::unique_ptr<TraceWriter> trace, TraceWriter::open("run/trace.jsonl"));
//   trace->write({.label = label, .end_ticks = end, .wall_ticks = end - start, .flags = TraceEvent::hit});
//   trace->close();
//
// An event is queued; a thread of the writer makes the lines and appends them in batches, whole lines in one write, at
// least every half second. So a kill -9 loses at most the last second, and a reader never sees half a line but at the very end.
// After fork() the child starts with an empty queue and a thread of its own; what was queued is the parent's to write.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lmemo/result.h"

namespace lmemo {

// A JSON string with its quotes, in ASCII. `wtf8` is UTF-8 that may hold lone surrogates; they become \ud800.
std::string json_quoted(std::string_view wtf8);
// The 32 hex digits under which a prompt appears in a trace: the first half of its SHA-256.
std::string trace_prompt_hash(std::string_view prompt_wtf8);
// The middle of a line, of JSON texts: "view_id": …, "prompt_hash": …, "top_k": …, "op": …
std::string trace_label(std::string_view view_id_json, std::string_view prompt_hash_json,
                        std::string_view top_k_json, std::string_view op_json);

struct TraceEvent {
  enum Flags : uint8_t { miss = 0, hit = 1, waited = 2, has_time = 4 };

  std::string_view label;       // As trace_label() makes it.
  std::string_view probe = {};  // A JSON value; empty: null.
  std::string_view error = {};  // A JSON value; empty: the line has no such member.
  uint64_t end_ticks = 0;
  uint64_t wall_ticks = 0;
  unsigned flags = miss;
  // With has_time, instead of the ticks.
  double time_seconds = 0;
  double wall_ms = 0;
};

class TraceWriter {
 public:
  // Makes the parent directories and the file; appends to a file that is there.
  static Result<std::unique_ptr<TraceWriter>> open(const std::filesystem::path& path);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // From any thread. After close() it is ignored.
  void write(const TraceEvent& event);
  // Returns when everything written before is in the file.
  void flush();
  // The same, and lets go of the file. A second call does nothing.
  void close();
  // For the end of the process: closes every writer that is open.
  static void close_all();

  uint64_t lines() const { return lines_.load(std::memory_order_relaxed); }  // In the file.
  uint64_t lost_lines() const { return lost_lines_.load(std::memory_order_relaxed); }
  // Why lines were lost, once; empty afterwards.
  std::string take_complaint();

 private:
  static constexpr size_t kStripes = 8;
  static constexpr size_t kWakeBytes = 4 << 20;   // Of one stripe: do not wait for the half second.
  static constexpr size_t kMostBytes = 64 << 20;  // … and here the caller waits for the disk.

  // Events are queued as bytes, with copies of their texts: counting references to shared texts was tried, and the counts wandering
  // between two cores cost more than copying 150 bytes.
  struct alignas(64) Stripe {
    std::mutex mutex;  // Guards everything below.
    std::vector<char> events;
    size_t byte_count = 0;
    // Guarded by drain_mutex_: the two take turns, so that steady tracing takes no new memory.
    std::vector<char> spare;
  };

  TraceWriter(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}
  void start_thread();  // Requires: mutex_ is held.
  void run();
  void drain();
  void append(std::string_view lines, uint64_t line_count);

  // What pthread_atfork needs: nobody is in the middle of anything when the process is copied.
  friend struct ForkHandlers;
  void lock_all();
  void unlock_all();
  void begin_child();

  const std::filesystem::path path_;
  std::array<Stripe, kStripes> stripes_;
  std::atomic<bool> has_events_ = false;
  std::atomic<bool> is_closed_ = false;
  std::atomic<uint64_t> lines_ = 0;
  std::atomic<uint64_t> lost_lines_ = 0;

  std::mutex drain_mutex_;  // One drain at a time. Taken before mutex_ and before those of the stripes.
  std::string buffer_;
  bool is_torn_ = false;  // The last write stopped inside a line.
  int file_;

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable wake_;
  std::unique_ptr<std::thread> thread_;
  bool is_stopping_ = false;
  bool wants_drain_ = false;
  std::string complaint_;
};

}  // namespace lmemo
