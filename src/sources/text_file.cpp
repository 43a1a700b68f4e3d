#include "sources/text_file.h"

#include <simdjson.h>

#include <algorithm>
#include <string_view>

#include "base/utf8.h"
#include "sources/byte_stream.h"

namespace lmemo {
namespace {

constexpr size_t kStepBytes = size_t{1} << 20;

size_t first_bad_byte(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at, 4));
    if (length == 0) return at;
    at += length;
  }
  return text.size();
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t max_bytes) {
  LMEMO_ASSIGN(const auto stream, ByteStream::open(path));
  std::string text;
  while (true) {
    const size_t have = text.size();
    text.resize(have + std::max(kStepBytes, have / 2));
    const size_t room = text.size() - have;
    LMEMO_ASSIGN(const size_t count, stream->read(std::span(text).subspan(have)));
    text.resize(have + count);
    if (text.size() > max_bytes)
      return Error{ErrorCode::invalid_argument, path.string() + " is longer than " +
                                                    std::to_string(max_bytes) +
                                                    " bytes, the limit of one document; cut it into parts"};
    if (count < room) break;
  }
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (!simdjson::validate_utf8(text.data(), text.size()))
    return Error{ErrorCode::invalid_argument, path.string() + " is not UTF-8: byte " +
                                                  std::to_string(first_bad_byte(text)) + " of its text"};
  return text;
}

}  // namespace lmemo
