#include "faces/forward/trace_writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <new>
#include <set>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/tick_clock.h"

namespace lmemo {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 400ms;  // Between the first event of a batch and its writing.
constexpr size_t kBufferBytes = 1 << 20;

size_t stripe_of_this_thread(size_t stripes) {
  static std::atomic<size_t> next{0};
  thread_local const size_t stripe = next.fetch_add(1, std::memory_order_relaxed);
  return stripe % stripes;
}

// The code point at the front and its length. A byte that begins none counts as itself, in Latin-1.
uint32_t decode_wtf8(std::string_view text, size_t& length) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const auto is_continued = [&](size_t count) {
    if (text.size() <= count) return false;
    for (size_t at = 1; at <= count; ++at)
      if ((byte(at) & 0xC0) != 0x80) return false;
    return true;
  };
  if (byte(0) >= 0xF0 && byte(0) < 0xF5 && is_continued(3)) {
    length = 4;
    return (byte(0) & 7u) << 18 | (byte(1) & 63u) << 12 | (byte(2) & 63u) << 6 | (byte(3) & 63u);
  }
  if (byte(0) >= 0xE0 && byte(0) < 0xF0 && is_continued(2)) {
    length = 3;
    return (byte(0) & 15u) << 12 | (byte(1) & 63u) << 6 | (byte(2) & 63u);
  }
  if (byte(0) >= 0xC2 && byte(0) < 0xE0 && is_continued(1)) {
    length = 2;
    return (byte(0) & 31u) << 6 | (byte(1) & 63u);
  }
  length = 1;
  return byte(0);
}

void append_escape(std::string& out, uint32_t unit) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[unit >> shift & 15];
}

// How an event lies in the queue; its texts follow.
struct QueuedEvent {
  uint64_t end_ticks;  // Or the bits of a double, with has_time.
  uint64_t wall_ticks;
  uint32_t label_bytes;
  uint16_t probe_bytes;
  uint16_t error_bytes;
  uint32_t flags;
};

// Now, in both clocks: what ticks of the last second mean.
struct TimeScale {
  int64_t now_ns = system_clock().now_ns();
  uint64_t now_ticks = ticks_now();
  double tick_ns = seconds_per_tick() * 1e9;

  int64_t time_us(uint64_t ticks) const {
    const auto age_ticks = static_cast<double>(static_cast<int64_t>(now_ticks - ticks));
    return (now_ns - static_cast<int64_t>(age_ticks * tick_ns)) / 1000;
  }
  uint64_t wall_ns(uint64_t ticks) const {
    return static_cast<uint64_t>(static_cast<double>(ticks) * tick_ns);
  }
};

// A line under construction, in memory that is large enough.
class LineWriter {
 public:
  explicit LineWriter(char* at) : at_(at) {}

  void text(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  // "12.000345": a whole number of millionths.
  void millionths(uint64_t value) {
    at_ = std::to_chars(at_, at_ + 24, value / 1'000'000).ptr;
    *at_++ = '.';
    uint64_t fraction = value % 1'000'000;
    for (int place = 5; place >= 0; --place, fraction /= 10)
      at_[place] = static_cast<char>('0' + fraction % 10);
    at_ += 6;
  }
  void number(double value) {
    if (!std::isfinite(value)) return text("null");
    const char* const start = at_;
    at_ = std::to_chars(at_, at_ + 32, value).ptr;
    const std::string_view written(start, static_cast<size_t>(at_ - start));
    if (written.find_first_not_of("-0123456789") == std::string_view::npos) text(".0");
  }
  char* end() const { return at_; }

 private:
  char* at_;
};

constexpr size_t kFrameBytes = 256;  // What a line has besides its texts, at most.

char* write_line(char* at, const QueuedEvent& event, const char* texts, const TimeScale& scale) {
  const std::string_view label(texts, event.label_bytes);
  const std::string_view probe(texts + event.label_bytes, event.probe_bytes);
  const std::string_view error(texts + event.label_bytes + event.probe_bytes, event.error_bytes);
  const bool has_time = (event.flags & TraceEvent::has_time) != 0;
  LineWriter line(at);
  line.text("{\"ts\": ");
  if (has_time)
    line.number(std::bit_cast<double>(event.end_ticks));
  else
    line.millionths(static_cast<uint64_t>(std::max<int64_t>(0, scale.time_us(event.end_ticks))));
  line.text(", \"probe\": ");
  line.text(probe.empty() ? "null" : probe);
  line.text(", ");
  line.text(label);
  line.text(", \"wall_ms\": ");
  if (has_time)
    line.number(std::bit_cast<double>(event.wall_ticks));
  else
    line.millionths(scale.wall_ns(event.wall_ticks));
  line.text((event.flags & TraceEvent::hit) != 0 ? ", \"hit\": true" : ", \"hit\": false");
  if ((event.flags & TraceEvent::waited) != 0) line.text(", \"waited\": true");
  if (!error.empty()) {
    line.text(", \"error\": ");
    line.text(error);
  }
  line.text("}\n");
  return line.end();
}

// Every open writer, for fork() and for the end of the process. Never destroyed.
struct Registry {
  std::mutex mutex;
  std::set<TraceWriter*> writers;
};
Registry& registry() {
  static auto* const only = new Registry;
  return *only;
}

bool ends_inside_a_line(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const off_t size = lseek(file, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && pread(file, &last, 1, size - 1) != 1) last = '\n';
  ::close(file);
  return last != '\n';
}

}  // namespace

struct ForkHandlers {
  static void before() {
    registry().mutex.lock();
    for (TraceWriter* writer : registry().writers) writer->lock_all();
  }
  static void in_parent() {
    for (TraceWriter* writer : registry().writers) writer->unlock_all();
    registry().mutex.unlock();
  }
  static void in_child() {
    for (TraceWriter* writer : registry().writers) writer->begin_child();
    registry().mutex.unlock();
  }
  static void install() {
    [[maybe_unused]] static const int installed = pthread_atfork(&before, &in_parent, &in_child);
  }
};

std::string json_quoted(std::string_view wtf8) {
  std::string out = "\"";
  for (size_t at = 0; at < wtf8.size();) {
    size_t length;
    const uint32_t point = decode_wtf8(wtf8.substr(at), length);
    at += length;
    if (point == '"' || point == '\\') {
      out += '\\';
      out += static_cast<char>(point);
    } else if (point >= 0x20 && point < 0x7F) {
      out += static_cast<char>(point);
    } else if (point == '\n') {
      out += "\\n";
    } else if (point < 0x10000) {
      append_escape(out, point);
    } else {
      append_escape(out, 0xD800 + ((point - 0x10000) >> 10));
      append_escape(out, 0xDC00 + ((point - 0x10000) & 0x3FF));
    }
  }
  return out += '"';
}

std::string trace_prompt_hash(std::string_view prompt_wtf8) {
  return to_hex(Bytes(sha256(bytes_of(prompt_wtf8)).bytes).first(16));
}

std::string trace_label(std::string_view view_id_json, std::string_view prompt_hash_json,
                        std::string_view top_k_json, std::string_view op_json) {
  std::string label = "\"view_id\": ";
  label += view_id_json;
  label += ", \"prompt_hash\": ";
  label += prompt_hash_json;
  label += ", \"top_k\": ";
  label += top_k_json;
  label += ", \"op\": ";
  return label += op_json;
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (!error && absolute.has_parent_path())
    std::filesystem::create_directories(absolute.parent_path(), error);
  if (error)
    return Error{ErrorCode::io_error,
                 "trace " + path.string() + ": cannot make its directory: " + error.message()};
  // Its last writer was killed; what we add begins a line of its own.
  const bool is_torn = ends_inside_a_line(absolute);
  const int file = open_descriptor(absolute, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (file < 0)
    return Error{ErrorCode::io_error,
                 "trace " + path.string() + ": cannot be opened: " + std::strerror(errno)};
  std::unique_ptr<TraceWriter> writer(new TraceWriter(absolute, file));
  writer->is_torn_ = is_torn;
  ForkHandlers::install();
  const std::lock_guard lock(registry().mutex);
  registry().writers.insert(writer.get());
  return writer;
}

TraceWriter::~TraceWriter() {
  close();
  const std::lock_guard lock(registry().mutex);
  registry().writers.erase(this);
}

void TraceWriter::write(const TraceEvent& event) {
  if (is_closed_.load(std::memory_order_acquire)) return;
  const bool has_time = (event.flags & TraceEvent::has_time) != 0;
  const std::string_view probe = event.probe.size() <= UINT16_MAX ? event.probe : std::string_view();
  const std::string_view error = event.error.size() <= UINT16_MAX ? event.error : std::string_view();
  const QueuedEvent queued{has_time ? std::bit_cast<uint64_t>(event.time_seconds) : event.end_ticks,
                           has_time ? std::bit_cast<uint64_t>(event.wall_ms) : event.wall_ticks,
                           static_cast<uint32_t>(event.label.size()),
                           static_cast<uint16_t>(probe.size()),
                           static_cast<uint16_t>(error.size()),
                           event.flags};
  const size_t byte_count = sizeof queued + event.label.size() + probe.size() + error.size();
  Stripe& stripe = stripes_[stripe_of_this_thread(kStripes)];
  size_t before;
  {
    const std::lock_guard lock(stripe.mutex);
    before = stripe.byte_count;
    if (stripe.events.size() < before + byte_count)
      stripe.events.resize(std::max<size_t>(2 * before, 64 << 10) + byte_count);
    char* at = stripe.events.data() + before;
    std::memcpy(at, &queued, sizeof queued);
    at += sizeof queued;
    for (const std::string_view text : {event.label, probe, error}) {
      if (!text.empty()) std::memcpy(at, text.data(), text.size());
      at += text.size();
    }
    stripe.byte_count = before + byte_count;
  }
  // The first event of a batch starts the thread, or tells it that the half second begins.
  if (!has_events_.load(std::memory_order_relaxed) && !has_events_.exchange(true)) {
    const std::lock_guard lock(mutex_);
    if (thread_ == nullptr && !is_stopping_) start_thread();
    wake_.notify_one();
  } else if (before / kWakeBytes != (before + byte_count) / kWakeBytes) {
    const std::lock_guard lock(mutex_);
    wants_drain_ = true;
    wake_.notify_one();
  }
  if (before >= kMostBytes) flush();
}

void TraceWriter::start_thread() {
  sigset_t all, before;  // Signals are for the threads of the program.
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::make_unique<std::thread>([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void TraceWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return has_events_.load() || wants_drain_ || is_stopping_; });
    if (!wants_drain_ && !is_stopping_)
      wake_.wait_for(lock, kInterval, [&] { return wants_drain_ || is_stopping_; });
    wants_drain_ = false;
    const bool is_last = is_stopping_;
    lock.unlock();
    drain();
    lock.lock();
    if (is_last) return;
  }
}

void TraceWriter::drain() {
  const std::lock_guard draining(drain_mutex_);
  has_events_.store(false);  // Before looking: an event that comes later raises it again.
  const TimeScale scale;
  buffer_.resize(kBufferBytes);
  size_t used = 0;
  uint64_t line_count = 0;
  const auto write_out = [&] {
    if (line_count > 0) append(std::string_view(buffer_).substr(0, used), line_count);
    used = 0;
    line_count = 0;
  };
  for (Stripe& stripe : stripes_) {
    std::vector<char>& taken = stripe.spare;
    size_t byte_count;
    {
      const std::lock_guard lock(stripe.mutex);
      stripe.events.swap(stripe.spare);
      byte_count = std::exchange(stripe.byte_count, 0);
    }
    for (size_t at = 0; at < byte_count;) {
      QueuedEvent event;
      std::memcpy(&event, taken.data() + at, sizeof event);
      at += sizeof event;
      const size_t text_bytes = event.label_bytes + event.probe_bytes + event.error_bytes;
      if (used + text_bytes + kFrameBytes > buffer_.size()) {
        write_out();
        if (text_bytes + kFrameBytes > buffer_.size()) buffer_.resize(text_bytes + kFrameBytes);
      }
      used = static_cast<size_t>(write_line(buffer_.data() + used, event, taken.data() + at, scale) -
                                 buffer_.data());
      at += text_bytes;
      ++line_count;
    }
    if (taken.size() > 2 * kWakeBytes) std::vector<char>().swap(taken);
  }
  write_out();
  if (buffer_.size() > kBufferBytes) std::string().swap(buffer_);
}

void TraceWriter::append(std::string_view lines, uint64_t line_count) {
  std::string with_end_of_torn_line;
  if (is_torn_) {
    with_end_of_torn_line = "\n";
    with_end_of_torn_line += lines;
    lines = with_end_of_torn_line;
  }
  std::string_view rest = lines;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno != EINTR) {
      break;
    }
  }
  if (rest.size() < lines.size()) is_torn_ = lines[lines.size() - rest.size() - 1] != '\n';
  const uint64_t lost = static_cast<uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
  lines_.fetch_add(line_count - std::min(lost, line_count), std::memory_order_relaxed);
  if (lost == 0) return;
  const std::string reason = std::strerror(errno);
  const std::lock_guard lock(mutex_);
  if (lost_lines_.fetch_add(lost, std::memory_order_relaxed) == 0)
    complaint_ = "trace " + path_.string() + ": lines are lost: " + reason;
}

void TraceWriter::flush() {
  if (is_closed_.load(std::memory_order_acquire)) return;
  drain();
}

void TraceWriter::close() {
  std::unique_ptr<std::thread> thread;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_.exchange(true)) return;
    is_stopping_ = true;
    thread = std::move(thread_);
    wake_.notify_one();
  }
  if (thread != nullptr) thread->join();
  drain();
  const std::lock_guard draining(drain_mutex_);
  ::close(file_);
  file_ = -1;
}

void TraceWriter::close_all() {
  std::set<TraceWriter*> writers;
  {
    const std::lock_guard lock(registry().mutex);
    writers = registry().writers;
  }
  for (TraceWriter* writer : writers) writer->close();
}

std::string TraceWriter::take_complaint() {
  const std::lock_guard lock(mutex_);
  return std::exchange(complaint_, {});
}

void TraceWriter::lock_all() {
  drain_mutex_.lock();
  mutex_.lock();
  for (Stripe& stripe : stripes_) stripe.mutex.lock();
}

void TraceWriter::unlock_all() {
  for (Stripe& stripe : stripes_) stripe.mutex.unlock();
  mutex_.unlock();
  drain_mutex_.unlock();
}

void TraceWriter::begin_child() {
  for (Stripe& stripe : stripes_) stripe.byte_count = 0;
  has_events_.store(false);
  // The thread exists in the parent only, and so do those that waited for it: both are made anew, not ended.
  static_cast<void>(thread_.release());
  new (&wake_) std::condition_variable;
  unlock_all();
}

}  // namespace lmemo
