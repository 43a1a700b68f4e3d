// Many texts on many threads: short ones go to a thread by the group, a long one is cut between lines.
//
// The first thread takes tasks from the front, the others from the back: what the first one makes lies where it belongs
// in the result, and with two threads only half of the ids are copied.

#include <algorithm>
#include <atomic>
#include <cstring>
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
constexpr size_t kLongTextOfMany = 4 * kTaskBytes;
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
    {
      workers_.resize(threads);
      std::atomic<size_t> number = 1;
      const Helpers helpers(threads - 1, [&] {
        work(workers_[number.fetch_add(1, std::memory_order_relaxed)],
             [&] { return tasks_.size() - 1 - next_from_back_.fetch_add(1, std::memory_order_relaxed); });
      });
      work(workers_[0], [from_front = size_t{0}]() mutable { return from_front++; });
    }
    for (const Task& task : tasks_)
      if (task.error) return *task.error;
    return joined(threads);
  }

 private:
  // Whole texts, or a part of one.
  struct Task {
    size_t first_text, last_text;
    size_t part_begin = 0,
           part_end = 0;  // Of first_text, if it is only a part. Moved to borders when it is done.
    bool is_part = false;
    const IdBuffer* buffer = nullptr;  // Of the worker that did it; what is its own begins and ends at:
    size_t ids_begin = 0, ids_end = 0;
    // Where the ids of each text end; none for a part that is not the last of its text.
    std::vector<uint64_t> ends = {};
    std::optional<Error> error = {};
    uint64_t first_id = 0;

    std::span<const uint32_t> ids() const {
      return buffer ? buffer->from(ids_begin).first(ids_end - ids_begin) : std::span<const uint32_t>();
    }
  };

  // What one thread makes, task by task.
  struct Worker {
    IdBuffer ids;
    Scratch scratch;
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

  // `choose` says which task is next, and is asked only if one is left.
  template <typename Choose>
  void work(Worker& worker, Choose choose) {
    worker.ids.expect(expected_ids(&worker == &workers_[0]));
    while (taken_.fetch_add(1, std::memory_order_relaxed) < tasks_.size()) {
      Task& task = tasks_[choose()];
      task.ids_begin = worker.ids.size();
      if (task.is_part) {
        do_part(task, worker);
      } else {
        do_texts(task, worker);
      }
      task.buffer = &worker.ids;
      task.ids_end = worker.ids.size();
    }
  }

  // Room for one id a byte, which only takes memory where ids are written; less for large batches, which grow. The
  // first thread's has to hold the ids of all, in the end.
  size_t expected_ids(bool is_first) const {
    constexpr size_t kMaxRoom = size_t{14} << 20;
    size_t bytes = 0;
    for (const SourceText& text : texts_)
      bytes += likely_bytes(text) + call_.frame.before.size() + call_.frame.after.size();
    if (!is_first) bytes = bytes / workers_.size() + bytes / 4;
    return bytes < 2048 ? 0 : std::min(bytes, kMaxRoom);
  }

  void do_texts(Task& task, Worker& worker) {
    task.ends.reserve(task.last_text - task.first_text);
    size_t bytes = 0, all_bytes = 0;
    for (size_t i = task.first_text; i < task.last_text; ++i) all_bytes += likely_bytes(texts_[i]);
    bool knows_ratio = all_bytes < 2 * kTaskBytes;
    for (size_t i = task.first_text; i < task.last_text; ++i) {
      if (!knows_ratio && bytes >= kTaskBytes) {
        const double ratio =
            static_cast<double>(worker.ids.size() - task.ids_begin) / static_cast<double>(bytes);
        worker.ids.expect(task.ids_begin + static_cast<size_t>(ratio * 1.1 * static_cast<double>(all_bytes)));
        knows_ratio = true;
      }
      bytes += likely_bytes(texts_[i]);
      const Result<std::string_view> text = checked_text(texts_[i], 0, texts_[i].unit_count, worker);
      const Status status =
          text.ok() ? tokenizer_.encode_text(*text, call_, worker.scratch, worker.ids) : text.error();
      if (!status.ok()) return note(task, i, status.error());
      task.ends.push_back(worker.ids.size() - task.ids_begin);
    }
  }

  void do_part(Task& task, Worker& worker) {
    if (!move_to_borders(task)) return;
    const SourceText& whole = texts_[task.first_text];
    const Result<std::string_view> part = checked_text(whole, task.part_begin, task.part_end, worker);
    if (!part.ok()) {
      // The place is counted from the start of the whole text, which is looked at again to say it.
      return note(task, task.first_text, checked_text(whole, 0, whole.unit_count, worker).error());
    }
    if (task.part_begin == 0) worker.ids.append(call_.frame.before);
    const Status status = tokenizer_.encode_raw(*part, task.part_begin > 0, worker.scratch, worker.ids);
    if (!status.ok()) return note(task, task.first_text, status.error());
    if (task.part_end < whole.unit_count) return;
    worker.ids.append(call_.frame.after);
    task.ends.push_back(worker.ids.size() - task.ids_begin);
  }

  // As UTF-8 that is well-formed.
  static Result<std::string_view> checked_text(const SourceText& text, size_t begin, size_t end,
                                               Worker& worker) {
    Result<std::string_view> utf8 = utf8_of(text, begin, end, worker.scratch.converted);
    if (utf8.ok() && text.form == SourceText::Form::utf8) LMEMO_TRY(expect_utf8(*utf8));
    return utf8;
  }

  static void note(Task& task, size_t text, const Error& error) {
    task.error = Error{error.code, "text " + std::to_string(text) + ": " + error.message};
  }

  Result<TokenBatch> joined(unsigned threads) {
    TokenBatch batch;
    batch.offsets.reserve(texts_.size() + 1);
    uint64_t count = 0;
    for (Task& task : tasks_) {
      task.first_id = count;
      for (const uint64_t end : task.ends) batch.offsets.push_back(count + end);
      count += task.ids().size();
    }
    if (call_.rules.padding) return padded(batch.offsets);
    IdBuffer& first = workers_[0].ids;
    const size_t in_place = first.size();
    IdBuffer all;
    const bool has_room = first.make_whole(count);
    if (!has_room) all.expect(count);
    uint32_t* const ids = has_room ? first.data() : all.data();
    taken_ = 0;
    const auto copy = [&] {
      for (size_t i; (i = taken_.fetch_add(1, std::memory_order_relaxed)) < tasks_.size();) {
        const Task& task = tasks_[i];
        if (task.ids_begin == task.ids_end || (has_room && task.buffer == &first)) continue;
        std::memcpy(ids + task.first_id, task.buffer->data() + task.ids_begin,
                    (task.ids_end - task.ids_begin) * sizeof(uint32_t));
      }
    };
    {
      const Helpers helpers(count - in_place < kTaskBytes ? 0 : threads - 1, copy);
      copy();
    }
    if (!has_room) all.make_whole(count);
    batch.ids = std::move(has_room ? first : all).take();
    return batch;
  }

  // To the longest of the batch, if the file asks for it.
  TokenBatch padded(const std::vector<uint64_t>& offsets) {
    const Padding& padding = *call_.rules.padding;
    uint64_t longest = 0;
    for (size_t i = 1; i < offsets.size(); ++i) longest = std::max(longest, offsets[i] - offsets[i - 1]);
    const uint64_t target = padding.target(longest);
    IdBuffer all;
    TokenBatch batch;
    Ids ids;  // Of one text.
    for (Task& task : tasks_) {
      uint64_t begin = 0;
      for (const uint64_t end : task.ends) {
        const std::span<const uint32_t> made = task.ids().subspan(begin, end - begin);
        ids.insert(ids.end(), made.begin(), made.end());
        padding.apply(ids, target);
        all.append(ids);
        batch.offsets.push_back(all.size());
        ids.clear();
        begin = end;
      }
      const std::span<const uint32_t> rest = task.ids().subspan(begin);
      ids.insert(ids.end(), rest.begin(), rest.end());
    }
    batch.ids = std::move(all).take();
    return batch;
  }

  const FastTokenizer& tokenizer_;
  const std::span<const SourceText> texts_;
  const Call& call_;
  std::vector<Task> tasks_;                 // Each is changed only by the thread that took it.
  std::vector<Worker> workers_;             // One for each thread.
  std::atomic<size_t> taken_ = 0;           // How many tasks somebody has begun.
  std::atomic<size_t> next_from_back_ = 0;  // Of those, by others than the first thread.
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
