// Any bytes as JSON lines: verdicts, never a crash, and texts that are UTF-8.
#include <cstdlib>
#include <string>

#include "base/utf8.h"
#include "sources/json_lines.h"

namespace {

void check_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = lmemo::utf8_length(text.substr(at, 4));
    if (length == 0) std::abort();
    at += length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  static JsonLineParser parser;
  static const FieldPath text_path = *FieldPath::parse("text");
  static const FieldPath deep_path = *FieldPath::parse("a.b");
  static const FieldPath messages_path = *FieldPath::parse("messages");
  std::string buffer(reinterpret_cast<const char*>(data), size);
  buffer.append(kLinePadding, '\0');
  const std::string_view line(buffer.data(), size);

  std::string_view text, other;
  if (parser.text(line, text_path, text).ok()) check_utf8(text);
  if (parser.texts(line, text_path, deep_path, text, other).ok()) check_utf8(other);
  std::vector<ChatMessage> messages;
  if (parser.messages(line, messages_path, messages).ok())
    for (const ChatMessage& message : messages) check_utf8(message.role), check_utf8(message.content);
  std::string json;
  if (parser.messages_json(line, messages_path, "text", json).ok()) check_utf8(json);
  parser.field_names(line);
  return 0;
}
