// Many texts on many threads: short ones go to a thread by the group, a long one is cut between lines.

#include <atomic>
#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

#include "tokenizer/fast/fast_tokenizer.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/mappings.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

constexpr size_t kTaskBytes = size_t{256} << 10;
constexpr size_t kLongText = 4 * kTaskBytes;

bool is_visible(uint32_t character) { return !has_flag(character, kRegexSpace) && !may_change_in_nfc(character); }

// The first place from `at` on, behind a newline that stands alone between visible characters: every split pattern
// begins a piece there, and ends the one before as at the end of a text. The end if there is none.
size_t line_border(std::string_view text, size_t at) {
  for (at = std::max<size_t>(at, 1); (at = text.find('\n', at)) != std::string_view::npos; ++at) {
    if (at + 1 == text.size()) break;
    const uint32_t before = char_at(text, at - char_bytes_before(text, at));
    const uint32_t after = char_at(text, at + 1);
    if (is_visible(before) && is_visible(after) && after != '/') return at + 1;
  }
  return text.size();
}

// Threads that do the same work, and are waited for at the end. A machine that has no thread left gives fewer.
class Helpers {
 public:
  template <typename Work>
  Helpers(unsigned count, const Work& work) {
    try {
      while (threads_.size() < count) threads_.emplace_back(work);
    } catch (const std::system_error&) {
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace

class FastTokenizer::Batch {
 public:
  Batch(const FastTokenizer& tokenizer, std::span<const std::string_view> texts, const Call& call)
      : tokenizer_(tokenizer), texts_(texts), call_(call) {}

  Result<TokenBatch> run(unsigned threads) {
    plan_tasks(threads > 1);
    threads = static_cast<unsigned>(std::clamp<size_t>(tasks_.size(), 1, threads));
    {
      workers_.resize(threads);
      std::atomic<size_t> number = 1;
      const Helpers helpers(threads - 1, [&] { work(workers_[number.fetch_add(1, std::memory_order_relaxed)]); });
      work(workers_[0]);
    }
    for (const Task& task : tasks_)
      if (task.error) return *task.error;
    return joined(threads);
  }

 private:
  // Whole texts, or a part of one.
  struct Task {
    size_t first_text, last_text;
    size_t part_begin = 0, part_end = 0;  // Of first_text, if it is only a part.
    bool is_part = false;
    const IdBuffer* buffer = nullptr;  // Of the worker that did it; what is its own begins and ends at:
    size_t ids_begin = 0, ids_end = 0;
    std::vector<uint64_t> ends = {};  // Where the ids of each text end; none for a part that is not the last of its text.
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
    for (size_t i = 0; is_parallel && i < texts_.size(); ++i) {
      if (texts_[i].size() >= kLongText && tokenizer_.may_cut_ && call_.is_simple()) {
        close(i);
        add_parts(i);
        first = i + 1;
        continue;
      }
      bytes += texts_[i].size() + 32;
      if (bytes >= kTaskBytes) close(i + 1);
    }
    close(texts_.size());
  }

  void add_parts(size_t text) {
    for (size_t begin = 0; begin < texts_[text].size();) {
      const size_t end = line_border(texts_[text], begin + kLongText);
      tasks_.push_back({text, text + 1, begin, end, true});
      begin = end;
    }
  }

  void work(Worker& worker) {
    worker.ids.expect(expected_ids());
    for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_.size();) {
      Task& task = tasks_[i];
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

  // Room for one id a byte, which only takes memory where ids are written; less for large batches, which grow.
  size_t expected_ids() const {
    constexpr size_t kMaxRoom = size_t{14} << 20;
    size_t bytes = 0;
    for (const std::string_view text : texts_) bytes += text.size() + call_.frame.before.size() + call_.frame.after.size();
    bytes = bytes / workers_.size() + (workers_.size() > 1 ? bytes / 4 : 0);
    return bytes < 2048 ? 0 : std::min(bytes, kMaxRoom);
  }

  void do_texts(Task& task, Worker& worker) {
    task.ends.reserve(task.last_text - task.first_text);
    size_t bytes = 0, all_bytes = 0;
    for (size_t i = task.first_text; i < task.last_text; ++i) all_bytes += texts_[i].size();
    bool knows_ratio = all_bytes < 2 * kTaskBytes;
    for (size_t i = task.first_text; i < task.last_text; ++i) {
      if (!knows_ratio && bytes >= kTaskBytes) {
        const double ratio = static_cast<double>(worker.ids.size() - task.ids_begin) / static_cast<double>(bytes);
        worker.ids.expect(task.ids_begin + static_cast<size_t>(ratio * 1.1 * static_cast<double>(all_bytes)));
        knows_ratio = true;
      }
      bytes += texts_[i].size();
      const Status status = tokenizer_.encode_text(texts_[i], call_, worker.scratch, worker.ids);
      if (!status.ok()) return note(task, i, status.error());
      task.ends.push_back(worker.ids.size() - task.ids_begin);
    }
  }

  void do_part(Task& task, Worker& worker) {
    const std::string_view text = texts_[task.first_text];
    const std::string_view part = text.substr(task.part_begin, task.part_end - task.part_begin);
    if (const Status status = expect_utf8(part); !status.ok()) {
      // The place is counted from the start of the whole text, which is looked at again to say it.
      return note(task, task.first_text, expect_utf8(text).error());
    }
    if (task.part_begin == 0) worker.ids.append(call_.frame.before);
    const Status status = tokenizer_.encode_raw(part, worker.scratch, worker.ids);
    if (!status.ok()) return note(task, task.first_text, status.error());
    if (task.part_end < text.size()) return;
    worker.ids.append(call_.frame.after);
    task.ends.push_back(worker.ids.size() - task.ids_begin);
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
    if (workers_.size() == 1) {
      batch.ids = std::move(workers_[0].ids).take();
      return batch;
    }
    batch.ids.resize(count);
    next_ = 0;
    const auto copy = [&] {
      for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_.size();) {
        const std::span<const uint32_t> ids = tasks_[i].ids();
        if (!ids.empty()) std::memcpy(batch.ids.data() + tasks_[i].first_id, ids.data(), ids.size_bytes());
      }
    };
    {
      const Helpers helpers(threads - 1, copy);
      copy();
    }
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
  const std::span<const std::string_view> texts_;
  const Call& call_;
  std::vector<Task> tasks_;      // Each is changed only by the thread that took it.
  std::vector<Worker> workers_;  // One for each thread.
  std::atomic<size_t> next_ = 0;
};

Result<TokenBatch> FastTokenizer::encode_batch(std::span<const std::string_view> texts, const EncodeOptions& options,
                                               unsigned threads) const {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  LMEMO_ASSIGN(const Call call, call_of(options));
  return Batch(*this, texts, call).run(threads);
}

}  // namespace lmemo::tokenizer
