// Many texts on many threads: short ones go to a thread by the group, a long one is cut between lines.
//
// One thread writes its ids where they belong. Several take tasks in order, each into a small buffer that stays in the
// nearer caches, and copy them to their place as soon as all tasks before are done: fresh memory, which may take longer
// to come by than the ids, is touched once.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "tokenizer/fast/fast_tokenizer.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/mappings.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

// For several threads, which should all end at about the same time.
constexpr size_t kTaskBytes = size_t{64} << 10;
constexpr size_t kLongTextOfMany = 2 * kTaskBytes;
// For one thread: what is rewritten on the way then stays in the nearer caches.
constexpr size_t kLongText = size_t{1} << 20;

bool is_visible(uint32_t character) {
  // What is not ASCII is seldom asked about, and the tables take long to be made.
  if (character < 0x80) return character != ' ' && (character < '\t' || character > '\r');
  return !has_flag(character, kRegexSpace) && !may_change_in_nfc(character);
}

// The character at `at`, or a blank if the text ends inside it: nobody has looked at the text before.
uint32_t whole_char_at(std::string_view text, size_t at) {
  return at + char_bytes(text, at) <= text.size() ? char_at(text, at) : ' ';
}

// Behind the first newline in [at, limit) that stands alone between visible characters: every split pattern
// begins a piece there, and ends the one before as at the end of a text. The end of the text if there is none.
size_t line_border(const SourceText& text, size_t at, size_t limit, const FastPlan& plan) {
  const auto may_follow = [&](uint32_t c) {
    return is_visible(c) && (plan.cuts_only_before ? c < 0x80 && plan.cuts_only_before->test(c) : c != '/');
  };
  const bool is_utf8 = text.form == SourceText::Form::utf8;
  const std::string_view bytes(static_cast<const char*>(text.data), is_utf8 ? text.unit_count : 0);
  SourceText searched = text;
  searched.unit_count = std::min(limit, text.unit_count - 1);
  for (at = std::max<size_t>(at, 1); at < searched.unit_count; ++at) {
    at = find_unit(searched, '\n', at);
    if (at == searched.unit_count) break;
    const uint32_t after = is_utf8 ? whole_char_at(bytes, at + 1) : unit_at(text, at + 1);
    if (after == ' ' || !may_follow(after)) continue;
    const uint32_t before =
        is_utf8 ? whole_char_at(bytes, at - char_bytes_before(bytes, at)) : unit_at(text, at - 1);
    if (is_visible(before)) return at + 1;
  }
  return text.unit_count;
}

// As UTF-8, at most, but for few.
size_t likely_bytes(const SourceText& text) {
  return text.form == SourceText::Form::ucs2 ? 2 * text.unit_count : text.unit_count;
}

// Threads that do the same work, and are waited for at the end. A machine that has no thread left gives fewer.
class Helpers {
 public:
  template <typename Work>
  Helpers(unsigned count, const Work& work) {
    try {
      while (threads_.size() < count) threads_.emplace_back(work);
    } catch (const std::system_error&) {}
  }

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace

class FastTokenizer::Batch {
 public:
  Batch(const FastTokenizer& tokenizer, std::span<const SourceText> texts, const Call& call)
      : tokenizer_(tokenizer), texts_(texts), call_(call) {}

  Result<TokenBatch> run(unsigned threads) {
    plan_tasks(threads > 1);
    threads = static_cast<unsigned>(std::clamp<size_t>(tasks_.size(), 1, threads));
    if (threads == 1) {
      all_.expect(first_room());
      Scratch scratch;
      for (size_t i = 0; i < tasks_.size(); ++i) {
        tasks_[i].first_id = all_.size();
        do_task(tasks_[i], scratch, all_);
        if (i == 0 && tasks_.size() > 1) all_.expect(likely_count(all_.size(), 1));
      }
    } else {
      {
        const Helpers helpers(threads - 1, [&] { work(); });
        work();
      }
      all_.advance_to(all_.data() + count_);
    }
    for (const Task& task : tasks_)
      if (task.error) return *task.error;
    return joined();
  }

 private:
  // Whole texts, or a part of one.
  struct Task {
    size_t first_text, last_text;
    size_t part_begin = 0,
           part_end = 0;  // Of first_text, if it is only a part. Moved to borders when it is done.
    bool is_part = false;
    // Where the ids of each text end; none for a part that is not the last of its text.
    std::vector<uint64_t> ends = {};
    std::optional<Error> error = {};
    uint64_t first_id = 0;  // In all_.
    // Of several threads: what it made, until that is in its place.
    bool is_done = false;
    IdBuffer made = {};
  };

  void plan_tasks(bool is_parallel) {
    size_t bytes = 0;
    size_t first = 0;
    const auto close = [&](size_t last) {
      if (first < last) tasks_.push_back({first, last});
      first = last;
      bytes = 0;
    };
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (likely_bytes(texts_[i]) >= (is_parallel ? kLongTextOfMany : kLongText) && tokenizer_.may_cut_ &&
          call_.is_simple()) {
        close(i);
        add_parts(i, is_parallel ? kTaskBytes : kLongText);
        first = i + 1;
        continue;
      }
      bytes += likely_bytes(texts_[i]) + 32;
      if (is_parallel && bytes >= kTaskBytes) close(i + 1);
    }
    close(texts_.size());
  }

  // Where exactly it is cut, each thread finds out for what it takes.
  void add_parts(size_t text, size_t part_units) {
    const size_t all = texts_[text].unit_count;
    for (size_t begin = 0; begin < all; begin += part_units)
      tasks_.push_back({text, text + 1, begin, std::min(begin + part_units, all), true});
  }

  // From the first border in its range up to the first one behind it. False if its range has none: then it belongs to
  // the part before.
  bool move_to_borders(Task& part) const {
    const SourceText& text = texts_[part.first_text];
    if (part.part_begin > 0) {
      part.part_begin = line_border(text, part.part_begin, part.part_end, tokenizer_.plan_);
      if (part.part_begin == text.unit_count) return false;
    }
    part.part_end = line_border(text, part.part_end, text.unit_count, tokenizer_.plan_);
    return true;
  }

  void do_task(Task& task, Scratch& scratch, IdBuffer& ids) {
    if (task.is_part)
      do_part(task, scratch, ids);
    else
      do_texts(task, scratch, ids);
  }

  // What each of several threads does.
  void work() {
    Scratch scratch;
    IdBuffer ids;
    for (size_t i; (i = next_task_.fetch_add(1, std::memory_order_relaxed)) < tasks_.size();) {
      ids.cut_to(0);
      ids.expect(kTaskBytes + IdBuffer::kSlack);  // Mostly enough, and kept for the next batch.
      do_task(tasks_[i], scratch, ids);
      put_in_place(i, ids);
    }
  }

  // Takes the ids of the task, leaves an empty buffer for them, and copies what now has all before it.
  void put_in_place(size_t number, IdBuffer& ids) {
    std::unique_lock lock(mutex_);
    std::swap(tasks_[number].made, ids);
    tasks_[number].is_done = true;
    if (!free_.empty()) {
      std::swap(ids, free_.back());
      free_.pop_back();
    }
    if (number != placed_) return;  // Who does the one before copies this one, too.
    for (; placed_ < tasks_.size() && tasks_[placed_].is_done; ++placed_) {
      tasks_[placed_].first_id = count_;
      count_ += tasks_[placed_].made.size();
    }
    const size_t last = placed_;
    while (all_.room() < count_) {
      if (copying_ > 0) {
        copies_end_.wait(lock);
      } else {
        // All before this task is in its place, but for others that wait for room.
        all_.advance_to(all_.data() + std::min<size_t>(tasks_[number].first_id, all_.room()));
        all_.expect(likely_count(count_, last));
      }
    }
    ++copying_;
    lock.unlock();
    for (size_t i = number; i < last; ++i)
      if (const IdBuffer& made = tasks_[i].made; made.size() > 0)
        std::memcpy(all_.data() + tasks_[i].first_id, made.data(), made.size() * sizeof(uint32_t));
    lock.lock();
    for (size_t i = number; i < last; ++i) free_.push_back(std::move(tasks_[i].made));
    if (--copying_ == 0) copies_end_.notify_all();
  }

  // How many ids there may be, going by those of the first tasks, which have as many bytes each as the others. Half as
  // many more cost nothing, since room is not touched before it is used; of too few, all would be copied.
  size_t likely_count(size_t count, size_t done) const {
    const double tasks_for_one = static_cast<double>(tasks_.size()) / static_cast<double>(done);
    return static_cast<size_t>(static_cast<double>(count) * tasks_for_one * 1.5) + IdBuffer::kSlack;
  }

  // Room for one id a byte, as long as nothing is known.
  size_t first_room() const {
    size_t bytes = 0;
    for (const SourceText& text : texts_)
      if ((bytes += likely_bytes(text) + call_.frame.before.size() + call_.frame.after.size()) > kTaskBytes)
        break;
    return std::min(bytes, kTaskBytes);
  }

  void do_texts(Task& task, Scratch& scratch, IdBuffer& ids) {
    const size_t first = ids.size();
    task.ends.reserve(task.last_text - task.first_text);
    size_t bytes = 0, all_bytes = 0;
    for (size_t i = task.first_text; i < task.last_text; ++i) all_bytes += likely_bytes(texts_[i]);
    bool knows_ratio = all_bytes < 2 * kTaskBytes;
    for (size_t i = task.first_text; i < task.last_text; ++i) {
      if (!knows_ratio && bytes >= kTaskBytes) {
        const double ratio = static_cast<double>(ids.size() - first) / static_cast<double>(bytes);
        ids.expect(first + static_cast<size_t>(ratio * 1.5 * static_cast<double>(all_bytes)));
        knows_ratio = true;
      }
      bytes += likely_bytes(texts_[i]);
      const Result<std::string_view> text = checked_text(texts_[i], 0, texts_[i].unit_count, scratch);
      const Status status = text.ok() ? tokenizer_.encode_text(*text, call_, scratch, ids) : text.error();
      if (!status.ok()) return note(task, i, status.error());
      task.ends.push_back(ids.size() - first);
    }
  }

  void do_part(Task& task, Scratch& scratch, IdBuffer& ids) {
    const size_t first = ids.size();
    if (!move_to_borders(task)) return;
    const SourceText& whole = texts_[task.first_text];
    const Result<std::string_view> part = checked_text(whole, task.part_begin, task.part_end, scratch);
    if (!part.ok()) {
      // The place is counted from the start of the whole text, which is looked at again to say it.
      return note(task, task.first_text, checked_text(whole, 0, whole.unit_count, scratch).error());
    }
    if (task.part_begin == 0) ids.append(call_.frame.before);
    const auto place = task.part_begin == 0 ? StretchPlace::first : StretchPlace::continued;
    const Status status = tokenizer_.encode_raw(*part, place, scratch, ids);
    if (!status.ok()) return note(task, task.first_text, status.error());
    if (task.part_end < whole.unit_count) return;
    ids.append(call_.frame.after);
    task.ends.push_back(ids.size() - first);
  }

  // As UTF-8 that is well-formed.
  static Result<std::string_view> checked_text(const SourceText& text, size_t begin, size_t end,
                                               Scratch& scratch) {
    if (text.form != SourceText::Form::utf8) return utf8_of(text, begin, end, scratch.converted);
    const std::string_view part(static_cast<const char*>(text.data) + begin, end - begin);
    LMEMO_TRY(expect_utf8(part));
    return part;
  }

  static void note(Task& task, size_t text, const Error& error) {
    task.error = Error{error.code, "text " + std::to_string(text) + ": " + error.message};
  }

  TokenBatch joined() {
    TokenBatch batch;
    batch.offsets.reserve(texts_.size() + 1);
    for (const Task& task : tasks_)
      for (const uint64_t end : task.ends) batch.offsets.push_back(task.first_id + end);
    if (call_.rules.padding) return padded(batch.offsets);
    batch.ids = std::move(all_).take();
    return batch;
  }

  // To the longest of the batch, if the file asks for it.
  TokenBatch padded(const std::vector<uint64_t>& offsets) {
    const Padding& padding = *call_.rules.padding;
    uint64_t longest = 0;
    for (size_t i = 1; i < offsets.size(); ++i) longest = std::max(longest, offsets[i] - offsets[i - 1]);
    const uint64_t target = padding.target(longest);
    IdBuffer made;
    TokenBatch batch;
    Ids ids;  // Of one text.
    for (size_t i = 1; i < offsets.size(); ++i) {
      const std::span<const uint32_t> text = all_.in({offsets[i - 1], offsets[i] - offsets[i - 1]});
      ids.assign(text.begin(), text.end());
      padding.apply(ids, target);
      made.append(ids);
      batch.offsets.push_back(made.size());
    }
    batch.ids = std::move(made).take();
    return batch;
  }

  const FastTokenizer& tokenizer_;
  const std::span<const SourceText> texts_;
  const Call& call_;
  std::vector<Task> tasks_;  // Each is changed only by the thread that took it, until it is done.
  std::atomic<size_t> next_task_ = 0;

  std::mutex mutex_;    // Guards everything below, if there are several threads.
  IdBuffer all_;        // Copies go on without it, each to places of its own, while copying_ says so.
  size_t placed_ = 0;   // Tasks that have their place: all of these are done.
  uint64_t count_ = 0;  // Of their ids.
  size_t copying_ = 0;  // Threads that copy: all_ does not grow meanwhile.
  std::condition_variable copies_end_;
  std::vector<IdBuffer> free_;
};

Result<TokenBatch> FastTokenizer::encode_texts(std::span<const SourceText> texts,
                                               const EncodeOptions& options, unsigned threads) const {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  LMEMO_ASSIGN(const Call call, call_of(options));
  return Batch(*this, texts, call).run(threads);
}

Result<TokenBatch> FastTokenizer::encode_batch(std::span<const std::string_view> texts,
                                               const EncodeOptions& options, unsigned threads) const {
  std::vector<SourceText> sources;
  sources.reserve(texts.size());
  for (const std::string_view text : texts) sources.push_back(SourceText::of(text));
  return encode_texts(sources, options, threads);
}

}  // namespace lmemo::tokenizer
