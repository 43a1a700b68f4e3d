// A step that writes text anew before it is cut: a normalizer, or what a pre-tokenizer inserts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/reference/normalizer.h"

namespace lmemo::tokenizer {

class TextRewriter {
 public:
  virtual ~TextRewriter() = default;

  // The text itself, or a view into `scratch`, whose size means nothing. Requires: well-formed UTF-8, not in `scratch`.
  virtual std::string_view rewrite(std::string_view text, std::string& scratch) const = 0;
};

// By the reference's own normalizer, which has to outlive it. `makes_nfc`: it is NFC and nothing else.
std::unique_ptr<TextRewriter> make_reference_rewriter(const Normalizer& normalizer, bool makes_nfc);

// Text that is written into a string from its start, which keeps its memory for the next one.
class ScratchWriter {
 public:
  // Makes room for `byte_count` bytes.
  ScratchWriter(std::string& scratch, size_t byte_count) : scratch_(scratch) {
    if (scratch.size() < byte_count) scratch.resize(byte_count + byte_count / 8);
    at = scratch.data();
  }

  void append(std::string_view text) {
    for (const char byte : text) *at++ = byte;
  }

  // Room for `byte_count` more.
  void reserve(size_t byte_count) {
    const size_t used = view().size();
    if (scratch_.size() - used >= byte_count) [[likely]]
      return;
    scratch_.resize(used + byte_count + scratch_.size() / 2);
    at = scratch_.data() + used;
  }

  std::string_view view() const { return {scratch_.data(), static_cast<size_t>(at - scratch_.data())}; }

  char* at;  // Where the next byte goes.

 private:
  std::string& scratch_;
};

}  // namespace lmemo::tokenizer
