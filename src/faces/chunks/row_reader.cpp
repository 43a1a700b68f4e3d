#include "lmemo/row_reader.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace lmemo {
namespace {

uint64_t bytes_of(const ChunkRows& rows) {
  return sizeof(ChunkRows) + rows.tokens.capacity() * sizeof(uint32_t) +
         rows.pieces.capacity() * sizeof(ChunkPiece) +
         (rows.row_tokens.capacity() + rows.row_pieces.capacity()) * sizeof(uint32_t);
}

template <typename Number>
void widen(std::span<const uint32_t> tokens, Number padding, size_t row_length, Number* out) {
  using Unsigned = std::make_unsigned_t<Number>;
  for (size_t i = 0; i < tokens.size(); ++i) out[i] = static_cast<Number>(static_cast<Unsigned>(tokens[i]));
  std::fill(out + tokens.size(), out + row_length, padding);
}

template <typename Number>
void write_positions(std::span<const ChunkPiece> pieces, size_t row_length, Number* out) {
  Number* const end = out + row_length;
  for (const ChunkPiece& piece : pieces) {
    for (uint32_t i = 0; i < piece.length; ++i) out[i] = static_cast<Number>(i);
    out += piece.length;
  }
  std::fill(out, end, Number{0});
}

template <typename Number>
void mask_boundaries(std::span<const ChunkPiece> pieces, Number* labels) {
  size_t start = 0;
  for (const ChunkPiece& piece : pieces) {
    if (start > 0) labels[start] = kIgnoredLabel;
    start += piece.length;
  }
}

}  // namespace

// A block takes some hundred kilobytes. Given back to the system and asked for again, they would cost more in page
// faults than the decoding.
class RowReader::SpareRows : public std::enable_shared_from_this<SpareRows> {
 public:
  std::shared_ptr<ChunkRows> take() {
    std::unique_ptr<ChunkRows> rows;
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        rows = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    if (!rows) rows = std::make_unique<ChunkRows>();
    return {rows.release(), [pool = shared_from_this()](ChunkRows* done) { pool->give_back(done); }};
  }

 private:
  static constexpr size_t kMaxSpare = 8;

  void give_back(ChunkRows* rows) {
    std::unique_ptr<ChunkRows> owned(rows);
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kMaxSpare) spare_.push_back(std::move(owned));
  }

  std::mutex mutex_;  // Guards spare_.
  std::vector<std::unique_ptr<ChunkRows>> spare_;
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

  std::shared_ptr<const ChunkRows> here;  // Neighbours often lie in one block.
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t row = rows[i];
    if (row >= set_->row_count()) {
      return Error{ErrorCode::invalid_argument, "row " + std::to_string(row) + " of a chunk set that has " +
                                                    std::to_string(set_->row_count())};
    }
    if (!here || row < here->first_row || row - here->first_row >= here->row_count()) {
      LMEMO_ASSIGN(here, block(set_->block_of(row)));
    }
    const size_t in_block = row - here->first_row;
    const std::span<const uint32_t> tokens = here->tokens_of(in_block);
    const std::span<const ChunkPiece> pieces = here->pieces_of(in_block);
    if (columns.input_ids) widen(tokens, columns.pad_id, row_length, columns.input_ids + i * row_length);
    if (columns.labels) {
      Number* const labels = columns.labels + i * row_length;
      widen(tokens, static_cast<Number>(kIgnoredLabel), row_length, labels);
      if (columns.masks_boundaries) mask_boundaries(pieces, labels);
    }
    if (columns.position_ids) write_positions(pieces, row_length, columns.position_ids + i * row_length);
    for (const ChunkPiece& piece : pieces) boundaries.lengths.push_back(piece.length);
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

Result<std::shared_ptr<const ChunkRows>> RowReader::block(uint64_t number) {
  std::unique_lock lock(mutex_);
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
Result<std::shared_ptr<const ChunkRows>> RowReader::decode(uint64_t number,
                                                           std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::shared_ptr<ChunkRows> rows = spare_->take();
  const Status status = set_->read_block(number, *rows);
  lock.lock();

  const auto found = blocks_.find(number);
  if (!status.ok()) {
    blocks_.erase(found);
    block_is_there_.notify_all();  // Who waits for it tries again, and gets the error.
    return status.error();
  }
  ++counters_.blocks_decoded;
  by_use_.push_front(number);
  found->second = {rows, bytes_of(*rows), false, by_use_.begin()};
  bytes_ += found->second.bytes;
  make_room();
  block_is_there_.notify_all();
  return std::shared_ptr<const ChunkRows>(std::move(rows));
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
}

void RowReader::go_on() {
  const std::lock_guard lock(mutex_);
  is_paused_ = false;
  work_is_there_.notify_all();
}

}  // namespace lmemo
