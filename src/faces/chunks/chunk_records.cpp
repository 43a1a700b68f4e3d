#include "faces/chunks/chunk_records.h"

#include <array>
#include <cassert>

#include "base/byte_reader.h"
#include "base/sha256.h"

namespace lmemo::chunks {
namespace {

Error damaged(const std::string& what) {
  return {ErrorCode::corruption, "the description of the chunk: " + what};
}

// In the order of the file.
template <typename Counts>
auto members_of(Counts& counts) {
  return std::array{&counts.rows,   &counts.tokens,    &counts.tokens_in,    &counts.documents,
                    &counts.pieces, &counts.broken,    &counts.invalid_utf8, &counts.missing_field,
                    &counts.empty,  &counts.too_short, &counts.duplicates};
}

constexpr size_t kRangeBytes = sizeof(uint32_t) + 2 * sizeof(uint64_t) + sizeof(Digest);

Key made(Result<Key> key) {
  assert(key.ok());  // Kind and names are ours.
  return std::move(key).value();
}

FieldValue field_of(const std::optional<uint32_t>& id) {
  return id ? FieldValue(int64_t{*id}) : FieldValue();
}

}  // namespace

std::vector<Field> parameter_fields(const ChunkParameters& parameters) {
  return {{"sequence_length", int64_t{parameters.sequence_length}},
          {"strategy", parameters.strategy},
          {"compression", parameters.compression},
          {"level", parameters.level},
          {"text_field", parameters.text_field},
          {"bos", field_of(parameters.bos)},
          {"eos", field_of(parameters.eos)},
          {"min_tokens", int64_t{parameters.min_tokens}},
          {"deduplicates", parameters.deduplicates},
          {"tokenizer", parameters.tokenizer},
          {"vocab_size", int64_t{parameters.vocab_size}}};
}

Key chunk_key(uint64_t number, const ChunkParameters& parameters, std::span<const RangeContent> ranges) {
  Sha256 content;
  for (const RangeContent& range : ranges) {
    std::string bytes;
    append_le(bytes, range.source);
    append_le(bytes, range.bytes);
    append_le(bytes, range.documents);
    bytes += text_of(range.sha256.bytes);
    content.update(bytes_of(bytes));
  }
  std::vector<Field> fields = parameter_fields(parameters);
  fields.push_back({"number", static_cast<int64_t>(number)});
  fields.push_back({"content", content.finish()});
  return made(Key::of(kChunkKind, std::move(fields)));
}

Result<ChunkParameters> parameters_of(const Key& key) {
  ChunkParameters parameters;
  size_t known = 0;
  bool is_sound = true;
  for (const Field& field : key.fields()) {
    const FieldValue::Variant& value = field.value.variant();
    const auto number = [&](uint32_t& to) {
      const int64_t* const found = std::get_if<int64_t>(&value);
      is_sound = is_sound && found && *found >= 0 && *found <= UINT32_MAX;
      if (is_sound) to = static_cast<uint32_t>(*found);
    };
    const auto text = [&](std::string& to) {
      const std::string* const found = std::get_if<std::string>(&value);
      is_sound = is_sound && found;
      if (is_sound) to = *found;
    };
    const auto token = [&](std::optional<uint32_t>& to) {
      if (std::holds_alternative<std::monostate>(value)) return;
      number(to.emplace());
    };
    ++known;
    if (field.name == "sequence_length")
      number(parameters.sequence_length);
    else if (field.name == "strategy")
      text(parameters.strategy);
    else if (field.name == "compression")
      text(parameters.compression);
    else if (field.name == "level")
      text(parameters.level);
    else if (field.name == "text_field")
      text(parameters.text_field);
    else if (field.name == "bos")
      token(parameters.bos);
    else if (field.name == "eos")
      token(parameters.eos);
    else if (field.name == "min_tokens")
      number(parameters.min_tokens);
    else if (field.name == "vocab_size")
      number(parameters.vocab_size);
    else if (field.name == "deduplicates") {
      const bool* const found = std::get_if<bool>(&value);
      is_sound = is_sound && found;
      if (is_sound) parameters.deduplicates = *found;
    } else if (field.name == "tokenizer") {
      const Blob* const found = std::get_if<Blob>(&value);
      is_sound = is_sound && found && found->bytes.size() == sizeof(Digest);
      if (is_sound) std::memcpy(parameters.tokenizer.bytes.data(), found->bytes.data(), sizeof(Digest));
    } else {
      --known;
    }
  }
  if (!is_sound || known != parameter_fields({}).size() || parameters.sequence_length == 0 ||
      parameters.sequence_length > kMaxSequenceLength)
    return damaged("its key is not one of a chunk");
  return parameters;
}

Key block_key(uint32_t block) { return made(Key::of(kBlockKind, {{"block", int64_t{block}}})); }
Key ids_key() { return made(Key::of(kIdsKind, {})); }

std::string encode(const Description& description) {
  std::string value;
  append_le(value, kDescriptionVersion);
  append_le(value, description.rows_per_block);
  append_le(value, description.number);
  for (const uint64_t* const count : members_of(description.counts)) append_le(value, *count);
  value += text_of(description.sha256.bytes);
  append_le(value, description.ids_offset);
  append_le(value, static_cast<uint32_t>(description.block_offsets.size()));
  append_le(value, static_cast<uint32_t>(description.ranges.size()));
  for (const uint64_t offset : description.block_offsets) append_le(value, offset);
  for (const RangeContent& range : description.ranges) {
    append_le(value, range.source);
    append_le(value, range.bytes);
    append_le(value, range.documents);
    value += text_of(range.sha256.bytes);
  }
  return value;
}

Result<Description> decode_description(Bytes value) {
  ByteReader reader(value);
  Description description;
  if (const auto version = reader.read<uint32_t>(); reader.ok() && version != kDescriptionVersion)
    return Error{ErrorCode::incompatible, "a chunk of version " + std::to_string(version) +
                                              "; this lmemo reads version " +
                                              std::to_string(kDescriptionVersion)};
  description.rows_per_block = reader.read<uint32_t>();
  description.number = reader.read<uint64_t>();
  for (uint64_t* const count : members_of(description.counts)) *count = reader.read<uint64_t>();
  description.sha256 = reader.read<Digest>();
  description.ids_offset = reader.read<uint64_t>();
  const auto blocks = reader.read<uint32_t>(), ranges = reader.read<uint32_t>();
  if (!reader.ok() || reader.left() != uint64_t{blocks} * sizeof(uint64_t) + uint64_t{ranges} * kRangeBytes)
    return damaged("its length does not fit its counts");
  description.block_offsets.reserve(blocks);
  for (uint32_t block = 0; block < blocks; ++block)
    description.block_offsets.push_back(reader.read<uint64_t>());
  description.ranges.reserve(ranges);
  for (uint32_t number = 0; number < ranges; ++number) {
    RangeContent& range = description.ranges.emplace_back();
    range.source = reader.read<uint32_t>();
    range.bytes = reader.read<uint64_t>();
    range.documents = reader.read<uint64_t>();
    range.sha256 = reader.read<Digest>();
  }
  const uint64_t rows = description.counts.rows, per_block = description.rows_per_block;
  if (rows > 0 && (per_block == 0 || (rows - 1) / per_block + 1 != blocks))
    return damaged("rows and blocks disagree");
  if (rows == 0 && blocks != 0) return damaged("blocks without rows");
  return description;
}

}  // namespace lmemo::chunks
