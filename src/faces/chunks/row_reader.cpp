#include "lmemo/row_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace lmemo {
namespace {

template <typename Number, typename Token>
void widen(std::span<const Token> tokens, Number padding, size_t row_length, Number* out) {
  using Unsigned = std::make_unsigned_t<Number>;
  for (size_t i = 0; i < tokens.size(); ++i) out[i] = static_cast<Number>(static_cast<Unsigned>(tokens[i]));
  std::fill(out + tokens.size(), out + row_length, padding);
}

template <typename Number>
void write_positions(std::span<const uint32_t> lengths, size_t row_length, Number* out) {
  Number* const end = out + row_length;
  for (const uint32_t length : lengths) {
    for (uint32_t i = 0; i < length; ++i) out[i] = static_cast<Number>(i);
    out += length;
  }
  std::fill(out, end, Number{0});
}

template <typename Number>
void mask_boundaries(std::span<const uint32_t> lengths, Number* labels) {
  size_t start = 0;
  for (const uint32_t length : lengths) {
    if (start > 0) labels[start] = kIgnoredLabel;
    start += length;
  }
}

// Says whether a child gets this memory. Only whole pages, and neither the first nor the last one: malloc writes its own words
// there, also for memory that is in use.
void share_with_children(const void* data, size_t bytes, bool is_shared) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin / page + 2) * page, last = (begin + bytes) / page * page - page;
  if (begin + bytes < 4 * page || first >= last) return;
  ::madvise(reinterpret_cast<void*>(first), last - first, is_shared ? MADV_DOFORK : MADV_DONTFORK);
}

// The start of a row into the cache, while another one is copied; the CPU fetches the rest by itself.
void prefetch(const void* data) {
  for (size_t line = 0; line < 8; ++line) __builtin_prefetch(static_cast<const char*>(data) + line * 64);
}

}  // namespace

// Shuffled reading goes over many blocks at once, and their size decides how many caches they fall out of: ids take two
// bytes where the vocabulary allows, and of pieces only the lengths are kept.
struct RowReader::Rows {
  void take(ChunkRows& from, bool is_narrow) {
    first_row = from.first_row;
    wide.clear();  // Not `narrow`: a vector that keeps its size is not filled with zeros before the next block.
    if (from.tokens.empty()) {
      std::swap(narrow, from.narrow);
    } else if (is_narrow) {
      narrow.resize(from.tokens.size());
      for (size_t i = 0; i < narrow.size(); ++i) narrow[i] = static_cast<uint16_t>(from.tokens[i]);
    } else {
      std::swap(wide, from.tokens);
    }
    lengths.resize(from.pieces.size());
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = from.pieces[i].length;
    std::swap(row_tokens, from.row_tokens);
    std::swap(row_pieces, from.row_pieces);
  }

  bool has(uint64_t row) const { return row >= first_row && row - first_row + 1 < row_tokens.size(); }
  uint64_t bytes() const {
    return sizeof(Rows) + narrow.capacity() * sizeof(uint16_t) +
           (wide.capacity() + lengths.capacity() + row_tokens.capacity() + row_pieces.capacity()) *
               sizeof(uint32_t);
  }
  void share_ids_with_children(bool is_shared) const {
    share_with_children(narrow.data(), narrow.capacity() * sizeof(uint16_t), is_shared);
    share_with_children(wide.data(), wide.capacity() * sizeof(uint32_t), is_shared);
  }
  const void* start_of(uint64_t row) const {
    const uint32_t at = row_tokens[row - first_row];
    return wide.empty() ? static_cast<const void*>(narrow.data() + at)
                        : static_cast<const void*>(wide.data() + at);
  }
  template <typename Number>
  void write_tokens(uint64_t row, Number padding, size_t row_length, Number* out) const {
    const uint32_t at = row_tokens[row - first_row];
    const uint32_t count = row_tokens[row - first_row + 1] - at;
    if (wide.empty()) {
      widen(std::span(narrow).subspan(at, count), padding, row_length, out);
    } else {
      widen(std::span(wide).subspan(at, count), padding, row_length, out);
    }
  }
  std::span<const uint32_t> lengths_of(uint64_t row) const {
    const uint32_t at = row_pieces[row - first_row];
    return std::span(lengths).subspan(at, row_pieces[row - first_row + 1] - at);
  }

  uint64_t first_row = 0;
  std::vector<uint16_t> narrow;  // One of the two.
  std::vector<uint32_t> wide;
  std::vector<uint32_t> lengths;
  std::vector<uint32_t> row_tokens;
  std::vector<uint32_t> row_pieces;
};

// A block takes some hundred kilobytes. Given back to the system and asked for again, they would cost more in page
// faults than the decoding.
class RowReader::SpareRows : public std::enable_shared_from_this<SpareRows> {
 public:
  std::shared_ptr<Rows> take() {
    std::unique_ptr<Rows> rows;
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        rows = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    if (!rows) rows = std::make_unique<Rows>();
    return {rows.release(), [pool = shared_from_this()](Rows* done) { pool->give_back(done); }};
  }

 private:
  static constexpr size_t kMaxSpare = 8;

  void give_back(Rows* rows) {
    std::unique_ptr<Rows> owned(rows);
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kMaxSpare) spare_.push_back(std::move(owned));
  }

  std::mutex mutex_;  // Guards spare_.
  std::vector<std::unique_ptr<Rows>> spare_;
};

RowReader::RowReader(std::shared_ptr<const ChunkSet> set, const RowReaderOptions& options)
    : set_(std::move(set)), options_(options), spare_(std::make_shared<SpareRows>()) {}

RowReader::~RowReader() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  work_is_there_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

RowReader::Counters RowReader::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

template <typename Number>
Status RowReader::read(std::span<const uint64_t> rows, const RowColumns<Number>& columns,
                       RowBoundaries& boundaries) {
  const size_t row_length = set_->sequence_length();
  boundaries.lengths.clear();
  boundaries.row_pieces.assign(1, 0);

  std::vector<SharedRows> blocks(rows.size());
  {
    std::unique_lock lock(mutex_);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] >= set_->row_count()) {
        return Error{ErrorCode::invalid_argument, "row " + std::to_string(rows[i]) +
                                                      " of a chunk set that has " +
                                                      std::to_string(set_->row_count())};
      }
      if (i > 0 && blocks[i - 1]->has(rows[i])) {
        blocks[i] = blocks[i - 1];
      } else {
        LMEMO_ASSIGN(blocks[i], block(set_->block_of(rows[i]), lock));
      }
    }
  }

  for (size_t i = 0; i < rows.size(); ++i) {
    const Rows& block = *blocks[i];
    if (i + 2 < rows.size()) prefetch(blocks[i + 2]->start_of(rows[i + 2]));
    const std::span<const uint32_t> lengths = block.lengths_of(rows[i]);
    const size_t at = i * row_length;
    if (columns.input_ids) block.write_tokens(rows[i], columns.pad_id, row_length, columns.input_ids + at);
    if (columns.labels) {
      block.write_tokens(rows[i], static_cast<Number>(kIgnoredLabel), row_length, columns.labels + at);
      if (columns.masks_boundaries) mask_boundaries(lengths, columns.labels + at);
    }
    if (columns.position_ids) write_positions(lengths, row_length, columns.position_ids + at);
    boundaries.lengths.insert(boundaries.lengths.end(), lengths.begin(), lengths.end());
    boundaries.row_pieces.push_back(static_cast<uint32_t>(boundaries.lengths.size()));
  }
  return {};
}

template Status RowReader::read(std::span<const uint64_t>, const RowColumns<int32_t>&, RowBoundaries&);
template Status RowReader::read(std::span<const uint64_t>, const RowColumns<int64_t>&, RowBoundaries&);

void RowReader::expect(std::span<const uint64_t> rows) {
  if (options_.threads == 0) return;
  const std::lock_guard lock(mutex_);
  bool has_more = false;
  for (const uint64_t row : rows) {
    if (row >= set_->row_count()) continue;
    const uint64_t number = set_->block_of(row);
    const auto [found, is_new] = blocks_.try_emplace(number);
    if (!is_new) continue;
    found->second.is_queued = true;
    expected_.push_back(number);
    has_more = true;
  }
  if (!has_more) return;
  // Started late: who only looks at a row needs no thread.
  while (threads_.size() < options_.threads) threads_.emplace_back([this] { decode_ahead(); });
  work_is_there_.notify_all();
}

Result<RowReader::SharedRows> RowReader::block(uint64_t number, std::unique_lock<std::mutex>& lock) {
  while (true) {
    const auto [found, is_new] = blocks_.try_emplace(number);
    Block& block = found->second;
    if (block.rows) {
      ++counters_.blocks_found;
      by_use_.splice(by_use_.begin(), by_use_, block.use);
      return block.rows;
    }
    if (is_new || block.is_queued) {
      block.is_queued = false;  // A thread that comes across it later leaves it alone.
      return decode(number, lock);
    }
    block_is_there_.wait(lock);
  }
}

// Requires: an entry of this number without rows, which nobody else is decoding.
Result<RowReader::SharedRows> RowReader::decode(uint64_t number, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  thread_local ChunkRows decoded;  // Used again, so that it stays in the cache.
  decoded.wants_narrow = options_.is_compact;
  const std::shared_ptr<Rows> rows = spare_->take();
  const Status status = set_->read_block(number, decoded);
  if (status.ok()) rows->take(decoded, options_.is_compact && set_->parameters().vocab_size <= 1u << 16);
  lock.lock();

  const auto found = blocks_.find(number);
  if (!status.ok()) {
    blocks_.erase(found);
    block_is_there_.notify_all();  // Who waits for it tries again, and gets the error.
    return status.error();
  }
  ++counters_.blocks_decoded;
  by_use_.push_front(number);
  found->second = {rows, rows->bytes(), false, by_use_.begin()};
  bytes_ += found->second.bytes;
  make_room();
  block_is_there_.notify_all();
  return SharedRows(rows);
}

void RowReader::make_room() {
  while (bytes_ > options_.max_bytes && by_use_.size() > 1) {
    const auto oldest = blocks_.find(by_use_.back());
    bytes_ -= oldest->second.bytes;
    blocks_.erase(oldest);
    by_use_.pop_back();
  }
}

void RowReader::decode_ahead() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_is_there_.wait(lock, [&] { return is_ending_ || (!is_paused_ && !expected_.empty()); });
    if (is_ending_) return;
    const uint64_t number = expected_.front();
    expected_.pop_front();
    const auto found = blocks_.find(number);
    if (found == blocks_.end() || !found->second.is_queued) continue;  // A reader was faster.
    found->second.is_queued = false;
    ++threads_at_work_;
    // An error is told to the one who asks for the block.
    if (decode(number, lock).ok()) ++counters_.blocks_decoded_ahead;
    if (--threads_at_work_ == 0) all_rest_.notify_all();
  }
}

void RowReader::pause() {
  std::unique_lock lock(mutex_);
  is_paused_ = true;
  all_rest_.wait(lock, [&] { return threads_at_work_ == 0; });
  for (const auto& [number, block] : blocks_)
    if (block.rows) kept_from_children_.push_back(block.rows);
  for (const SharedRows& rows : kept_from_children_) rows->share_ids_with_children(false);
}

void RowReader::go_on() {
  std::vector<SharedRows> kept;  // Let go without the lock.
  const std::lock_guard lock(mutex_);
  for (const SharedRows& rows : kept_from_children_) rows->share_ids_with_children(true);
  std::swap(kept, kept_from_children_);
  is_paused_ = false;
  work_is_there_.notify_all();
}

}  // namespace lmemo
