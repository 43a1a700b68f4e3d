// Builds a flatbuffer, the encoding of Arrow's metadata: just what arrow_stream.cpp needs of it. Written from the end
// to the front, as the format wants it: what is referred to is written before what refers to it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lmemo {

class FlatMessage {
 public:
  // Where something is: its distance from the end. 0 is nowhere.
  using Place = uint32_t;

  Place text(std::string_view text) {
    align(4, text.size() + 1);
    front_.insert(0, 1, '\0');
    front_.insert(0, text);
    return number(static_cast<uint32_t>(text.size()));
  }

  // A vector of structs or numbers, whose bytes are ready.
  Place vector(std::string_view bytes, size_t count, size_t alignment) {
    align(4, bytes.size());
    align(alignment, bytes.size());
    front_.insert(0, bytes);
    return number(static_cast<uint32_t>(count));
  }

  Place vector_of(const std::vector<Place>& places) {
    align(4, 4 * places.size());
    for (auto place = places.rbegin(); place != places.rend(); ++place) reference(*place);
    return number(static_cast<uint32_t>(places.size()));
  }

  void begin_table() { table_.clear(), table_end_ = size(); }
  template <typename Number>
  void field(int slot, Number value) {
    align(sizeof value, 0);
    table_.emplace_back(slot, number(value));
  }
  void field_at(int slot, Place place) { align(4, 0), table_.emplace_back(slot, reference(place)); }
  Place end_table() {
    align(4, 0);
    const Place table = number(int32_t{0});
    int slots = 0;
    for (const auto& [slot, place] : table_) slots = slot >= slots ? slot + 1 : slots;
    std::vector<uint16_t> vtable(2 + static_cast<size_t>(slots), 0);
    vtable[0] = static_cast<uint16_t>(2 * vtable.size());
    vtable[1] = static_cast<uint16_t>(table - table_end_);
    for (const auto& [slot, place] : table_)
      vtable[2 + static_cast<size_t>(slot)] = static_cast<uint16_t>(table - place);
    front_.insert(0, reinterpret_cast<const char*>(vtable.data()), 2 * vtable.size());
    const int32_t distance = static_cast<int32_t>(size() - table);
    std::memcpy(front_.data() + (size() - table), &distance, sizeof distance);
    return table;
  }

  // The whole, a multiple of 8 bytes long.
  std::string finish(Place root) {
    align(8, 4);
    reference(root);
    return std::move(front_);
  }

 private:
  Place size() const { return static_cast<Place>(front_.size()); }
  // So that after `more` bytes the front is aligned.
  void align(size_t alignment, size_t more) {
    while ((front_.size() + more) % alignment != 0) front_.insert(0, 1, '\0');
  }
  template <typename Number>
  Place number(Number value) {
    front_.insert(0, reinterpret_cast<const char*>(&value), sizeof value);
    return size();
  }
  Place reference(Place place) { return number(static_cast<uint32_t>(size() + 4 - place)); }

  std::string front_;
  std::vector<std::pair<int, Place>> table_;  // Slot and place of the fields of the table at hand.
  Place table_end_ = 0;
};

}  // namespace lmemo
