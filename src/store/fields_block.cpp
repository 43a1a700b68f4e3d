#include "store/fields_block.h"

#include <unordered_map>

namespace lmemo {

bool split_encoding(std::string_view encoding, std::vector<std::string_view>& fields) {
  fields.clear();
  if (encoding.empty()) return false;
  size_t position = 1 + static_cast<uint8_t>(encoding[0]);
  if (encoding.size() < position + sizeof(uint16_t)) return false;
  const auto count = load_le<uint16_t>(encoding.data() + position);
  position += sizeof(uint16_t);
  for (unsigned i = 0; i < count; ++i) {
    const size_t start = position;
    if (encoding.size() - position < 1) return false;
    position += 1 + static_cast<uint8_t>(encoding[position]);
    constexpr size_t kTypeAndLength = 1 + sizeof(uint32_t);
    if (encoding.size() < position + kTypeAndLength) return false;
    const auto value_bytes = load_le<uint32_t>(encoding.data() + position + 1);
    position += kTypeAndLength;
    if (encoding.size() - position < value_bytes) return false;
    position += value_bytes;
    fields.push_back(encoding.substr(start, position - start));
  }
  return position == encoding.size();
}

std::optional<EncodedField> parts_of_field(std::string_view encoded_field) {
  constexpr size_t kTypeAndLength = 1 + sizeof(uint32_t);
  if (encoded_field.empty()) return std::nullopt;
  const size_t name_end = 1 + static_cast<uint8_t>(encoded_field[0]);
  if (encoded_field.size() < name_end + kTypeAndLength) return std::nullopt;
  return EncodedField{encoded_field.substr(1, name_end - 1), static_cast<uint8_t>(encoded_field[name_end]),
                      encoded_field.substr(name_end + kTypeAndLength)};
}

std::string encode_field(const Field& field) {
  const Result<Key> key = Key::of("x", {field});
  if (!key.ok()) return {};
  constexpr size_t kHead = 1 + 1 + sizeof(uint16_t);  // The kind "x" and the count.
  return std::string(text_of(key->encoding()).substr(kHead));
}

std::string build_fields_block(size_t entry_count,
                               const std::function<std::string_view(size_t ordinal)>& encoding_of) {
  std::unordered_map<std::string_view, uint32_t> numbers;
  std::vector<uint32_t> starts{0}, rows{0}, references;
  std::string bytes;
  std::vector<std::string_view> fields;
  rows.reserve(entry_count + 1);
  for (size_t i = 0; i < entry_count; ++i) {
    if (split_encoding(encoding_of(i), fields)) {
      for (std::string_view field : fields) {
        const auto [found, is_new] = numbers.try_emplace(field, static_cast<uint32_t>(numbers.size()));
        if (is_new) {
          bytes += field;
          starts.push_back(static_cast<uint32_t>(bytes.size()));
        }
        references.push_back(found->second);
      }
    }
    rows.push_back(static_cast<uint32_t>(references.size()));
  }

  std::string block;
  append_le(block, static_cast<uint32_t>(numbers.size()));
  append_le(block, static_cast<uint32_t>(references.size()));
  const auto append_all = [&](const std::vector<uint32_t>& words) {
    block.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t));
  };
  append_all(starts);
  append_all(rows);
  append_all(references);
  block += bytes;
  block.resize(padded(block.size()));
  return block;
}

std::optional<FieldsBlock> FieldsBlock::parse(Bytes block, uint64_t entry_count) {
  if (block.size() < 2 * sizeof(uint32_t)) return std::nullopt;
  FieldsBlock parsed;
  parsed.distinct_ = load_le<uint32_t>(block.data());
  const auto reference_count = load_le<uint32_t>(block.data() + sizeof(uint32_t));
  parsed.words_ = block.data() + 2 * sizeof(uint32_t);
  parsed.rows_ = uint64_t{parsed.distinct_} + 1;
  parsed.references_ = parsed.rows_ + entry_count + 1;
  const uint64_t word_count = parsed.references_ + reference_count;
  const uint64_t room = block.size() - 2 * sizeof(uint32_t);
  if (word_count > room / sizeof(uint32_t)) return std::nullopt;
  parsed.bytes_ = text_of(block.subspan(2 * sizeof(uint32_t) + word_count * sizeof(uint32_t)));

  // Rising offsets that end inside: then every later look-up stays inside.
  const auto rises_to = [&](uint64_t from, uint64_t count, uint64_t end) {
    uint32_t previous = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint32_t current = parsed.at(from + i);
      if (current < previous || (i == 0 && current != 0)) return false;
      previous = current;
    }
    return previous <= end;
  };
  if (!rises_to(0, parsed.rows_, parsed.bytes_.size()) ||
      !rises_to(parsed.rows_, entry_count + 1, reference_count))
    return std::nullopt;
  for (uint64_t i = 0; i < reference_count; ++i)
    if (parsed.at(parsed.references_ + i) >= parsed.distinct_) return std::nullopt;
  return parsed;
}

std::string_view FieldsBlock::field(uint32_t number) const {
  return bytes_.substr(at(number), at(uint64_t{number} + 1) - at(number));
}

std::string FieldsBlock::encoding_of(uint64_t ordinal, std::string_view kind) const {
  const uint32_t first = at(rows_ + ordinal), end = at(rows_ + ordinal + 1);
  std::string encoding(1, static_cast<char>(kind.size()));
  encoding += kind;
  append_le(encoding, static_cast<uint16_t>(end - first));
  // No key is longer; a made-up block could name one long field a million times.
  for (uint32_t i = first; i < end && encoding.size() <= UINT16_MAX; ++i)
    encoding += field(at(references_ + i));
  return encoding;
}

void FieldsBlock::fields_of(uint64_t ordinal, std::vector<std::string_view>& fields) const {
  fields.clear();
  const uint32_t first = at(rows_ + ordinal), end = at(rows_ + ordinal + 1);
  for (uint32_t i = first; i < end && fields.size() < kMaxFields; ++i)
    fields.push_back(field(at(references_ + i)));
}

void FieldsBlock::numbers_of(uint64_t ordinal, std::vector<uint32_t>& numbers) const {
  numbers.clear();
  const uint32_t first = at(rows_ + ordinal), end = at(rows_ + ordinal + 1);
  for (uint32_t i = first; i < end && numbers.size() < kMaxFields; ++i)
    numbers.push_back(at(references_ + i));
}

std::optional<uint32_t> FieldsBlock::number_of(std::string_view encoded_field) const {
  for (uint32_t number = 0; number < distinct_; ++number)
    if (field(number) == encoded_field) return number;
  return std::nullopt;
}

bool FieldsBlock::has(uint64_t ordinal, uint32_t number) const {
  for (uint32_t i = at(rows_ + ordinal); i < at(rows_ + ordinal + 1); ++i)
    if (at(references_ + i) == number) return true;
  return false;
}

}  // namespace lmemo
