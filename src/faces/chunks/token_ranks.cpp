#include "faces/chunks/token_ranks.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "base/byte_reader.h"

namespace lmemo::chunks {
namespace {

constexpr uint32_t kMaxIds = 1u << 26;

Error damaged(const std::string& what) {
  return {ErrorCode::corruption, "the token ids of the chunk: " + what};
}

}  // namespace

unsigned bytes_for(uint64_t count) {
  const unsigned bits = count <= 1 ? 1 : static_cast<unsigned>(std::bit_width(count - 1));
  return (bits + 7) / 8;
}

Status check_tokens(std::span<const uint32_t> tokens, uint32_t vocab_size) {
  assert(vocab_size > 0 && vocab_size <= INT32_MAX);
  // The highest bit of either is set for a token that is too large: additions that every CPU does many at a time.
  uint32_t seen = 0;
  for (const uint32_t token : tokens) seen |= token | (vocab_size - 1 - token);
  if (seen <= INT32_MAX) return {};
  const uint32_t found = *std::max_element(tokens.begin(), tokens.end());
  return Error{ErrorCode::invalid_argument,
               "token " + std::to_string(found) + " in a vocabulary of " + std::to_string(vocab_size)};
}

Result<TokenRanks> TokenRanks::of(std::span<const uint32_t> tokens, uint32_t vocab_size) {
  // Two tables in turn: a token that comes again at once need not wait for its own count to be written.
  std::vector<uint32_t> counts(vocab_size, 0), others(vocab_size, 0);
  // In steps that stay in the nearest cache, so that checking costs no second way through memory.
  constexpr size_t kStep = 4096;
  for (size_t start = 0; start < tokens.size(); start += kStep) {
    const auto step = tokens.subspan(start, std::min(kStep, tokens.size() - start));
    LMEMO_TRY(check_tokens(step, vocab_size));
    for (size_t at = 0; at + 1 < step.size(); at += 2) {
      ++counts[step[at]];
      ++others[step[at + 1]];
    }
    if (step.size() % 2 == 1) ++counts[step.back()];
  }
  for (uint32_t id = 0; id < vocab_size; ++id) counts[id] += others[id];
  TokenRanks ranks;
  std::vector<uint32_t> of_width[33];
  for (uint32_t id = 0; id < vocab_size; ++id)
    if (counts[id] > 0) of_width[std::bit_width(counts[id])].push_back(id);
  for (size_t width = 32; width > 0; --width)
    ranks.ids_.insert(ranks.ids_.end(), of_width[width].begin(), of_width[width].end());
  ranks.ranks_ = std::move(counts);
  for (uint32_t rank = 0; rank < ranks.ids_.size(); ++rank) ranks.ranks_[ranks.ids_[rank]] = rank;
  return ranks;
}

// u32 count, then the difference of each id to the one before it, as a number of 7 bits a byte, least first. A step
// down begins a group of rarer ids: it is written as 0 (which no step up is) and the id.
std::string TokenRanks::encode() const {
  std::string value;
  append_le(value, static_cast<uint32_t>(ids_.size()));
  const auto append_number = [&](uint32_t number) {
    for (; number >= 128; number >>= 7) value.push_back(static_cast<char>(number | 128));
    value.push_back(static_cast<char>(number));
  };
  uint32_t previous = ~uint32_t{0};
  for (const uint32_t id : ids_) {
    if (id > previous) {
      append_number(id - previous);
    } else {
      append_number(0);
      append_number(id);
    }
    previous = id;
  }
  return value;
}

Result<TokenRanks> TokenRanks::decode(Bytes value) {
  ByteReader reader(value);
  const auto count = reader.read<uint32_t>();
  if (!reader.ok() || count > kMaxIds || count > reader.left()) return damaged("fewer than it says");
  TokenRanks ranks;
  ranks.ids_.reserve(count);
  const auto read_number = [&] {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      const auto byte = reader.read<uint8_t>();
      number |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return number;
    }
    return ~uint64_t{0};
  };
  uint64_t previous = 0;
  for (uint32_t rank = 0; rank < count; ++rank) {
    const uint64_t step = read_number();
    const uint64_t id = step == 0 ? read_number() : previous + step;
    // The highest bit is never set: readers know by it a rank that has no id.
    if (!reader.ok() || id > INT32_MAX) return damaged("no id at rank " + std::to_string(rank));
    ranks.ids_.push_back(static_cast<uint32_t>(id));
    previous = id;
  }
  if (!reader.is_at_end()) return damaged("more than it says");
  return ranks;
}

}  // namespace lmemo::chunks
