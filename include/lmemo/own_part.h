// Part of a mapped file that whoever holds this may write to: what is written is seen through this pointer alone, and is gone with it.
// The file, other views of it and later holders of the same part never see it. One holder at a time; the pages are the
// file's own until they are written to (src/base/own_parts.h).
#pragma once

#include <cstddef>
#include <utility>

namespace lmemo {

class OwnPart {
 public:
  OwnPart() = default;
  // For own_parts::take().
  explicit OwnPart(std::byte* data) : data_(data) {}
  OwnPart(OwnPart&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  OwnPart& operator=(OwnPart&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~OwnPart() {
    if (data_ != nullptr) give_back(data_);
  }

  std::byte* data() const { return data_; }  // Null: there is none.

 private:
  static void give_back(std::byte* data);

  std::byte* data_ = nullptr;
};

}  // namespace lmemo
